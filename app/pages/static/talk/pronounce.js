// Read a text aloud, and see how well each word and each sound of it was said (§4.18).

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { HoldButton } from "./hold.js";
import { languageChoices } from "./languages.js";
import { MicrophoneFault } from "./microphone.js";
import { Marks } from "./marks.js";
import { Alert } from "./words.js";

const EXAMPLES = [
  "Good morning. How are you today?",
  "The weather is beautiful, so we are going for a walk along the river.",
  "She sells sea shells by the sea shore.",
  "Could you tell me the way to the railway station, please?",
];
const LEAST_S = 0.3; // of what the server grades
const PHASES = {
  ready: "",
  opening: "Opening the microphone",
  listening: "Listening: read the text aloud",
  grading: "Grading",
};

/** `microphone` is the class whose `start` and `stop` give what was heard. */
export function Pronounce({ account, offers, microphone }) {
  const strategies = offers.pronunciation;
  const [name, setName] = useState(strategies.find(({ fault }) => !fault)?.name ?? "");
  const languages = languageChoices(strategies.find((strategy) => strategy.name === name)?.languages);
  const [chosen, setLanguage] = useState("en-US");
  const language = languages.some(({ code }) => code === chosen) ? chosen : languages[0].code;
  const [text, setText] = useState(EXAMPLES[0]);
  const reading = useReading(account, microphone);
  if (!name) return html`<p>This app has no strategy that grades pronunciation.</p>`;

  const busy = reading.phase === "grading";
  const question = {
    strategy: name,
    data: {
      language,
      reference_text: text,
      enable_miscue: true,
      enable_prosody_assessment: language.toLowerCase() === "en-us", // vendors grade it for that one alone
    },
  };
  return html`
    <section class="pronounce">
      <p>Choose a text or write one. Hold the button while you read it aloud.</p>
      <div class="pronounce-choices">
        <${Choice} label="Strategy" value=${name} onPick=${setName}>
          ${strategies.map(
            (offer) => html`<option value=${offer.name} disabled=${Boolean(offer.fault)}>${offer.name}</option>`,
          )}
        <//>
        <${Choice} label="I read" value=${language} onPick=${setLanguage}>
          ${languages.map(({ code, title }) => html`<option value=${code}>${title}</option>`)}
        <//>
        ${language.startsWith("en") &&
        html`<${Choice} label="Example" value=${EXAMPLES.includes(text) ? text : ""} onPick=${setText}>
          <option value="" disabled>your own text</option>
          ${EXAMPLES.map((example) => html`<option value=${example}>${example}</option>`)}
        <//>`}
      </div>
      <label>
        Text to read
        <textarea rows="3" maxlength="1000" value=${text} onInput=${(event) => setText(event.currentTarget.value)} />
      </label>
      <${HoldButton}
        label="Hold to talk"
        pressed=${reading.phase === "listening" || reading.phase === "opening"}
        disabled=${busy || !/[\p{L}\p{N}]/u.test(text)}
        onStart=${reading.begin}
        onStop=${() => reading.finish(question)}
      />
      <p class="pronounce-phase" aria-live="polite" aria-busy=${busy ? "true" : "false"}>${PHASES[reading.phase]}</p>
      ${reading.fault && html`<${Alert} fault=${reading.fault} onClose=${reading.forgive} />`}
      ${reading.result && html`<${Marks} result=${reading.result} />`}
    </section>
  `;
}

function Choice({ label, value, onPick, children }) {
  return html`
    <label>
      ${label}
      <select value=${value} onChange=${(event) => onPick(event.currentTarget.value)}>${children}</select>
    </label>
  `;
}

/** One reading at a time: listened to, sent, graded. */
function useReading(account, microphone) {
  const [phase, setPhase] = useState("ready");
  const [fault, setFault] = useState(null);
  const [result, setResult] = useState(null);
  const ear = useRef(null);
  const listening = useRef(false); // at this moment, not when the page was last drawn
  const asking = useRef(null);
  ear.current ??= new microphone();
  useEffect(
    () => () => {
      ear.current.cancel();
      asking.current?.abort();
    },
    [],
  );

  const attempt = async (work) => {
    try {
      await work();
    } catch (error) {
      if (error.name === "AbortError") return;
      setFault(error);
      setPhase("ready");
    }
  };
  const begin = () =>
    attempt(async () => {
      [setFault, setResult].forEach((set) => set(null));
      setPhase("opening");
      listening.current = await ear.current.start();
      if (!listening.current) throw new MicrophoneFault("early");
      setPhase("listening");
    });
  const finish = (question) =>
    attempt(async () => {
      const { base64, seconds } = await ear.current.stop();
      if (!listening.current) return; // `begin` tells that it was too early
      listening.current = false;
      if (seconds < LEAST_S) throw new MicrophoneFault("short");
      setPhase("grading");
      asking.current = new AbortController();
      const body = JSON.stringify(question) + base64;
      const options = { method: "POST", body, signal: asking.current.signal };
      setResult(await account.json("/bp/ai/audio/pronunciation", options));
      setPhase("ready");
    });
  return { phase, fault, result, begin, finish, forgive: () => setFault(null) };
}
