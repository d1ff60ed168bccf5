// The pronunciation tab: the user reads a text aloud, and each word and sound is scored (§4.18).

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { HoldButton } from "./hold_button.js";
import { languageChoices } from "./languages.js";
import { MicrophoneFault } from "../client/parley-client.js";
import { AssessmentResult } from "./assessment_result.js";
import { Alert } from "./errors.js";

const EXAMPLES = [
  "Good morning. How are you today?",
  "The weather is beautiful, so we are going for a walk along the river.",
  "She sells sea shells by the sea shore.",
  "Could you tell me the way to the railway station, please?",
];
const SHORTEST_S = 0.3; // the shortest audio that the server accepts
const PHASES = {
  ready: "",
  opening: "Opening the microphone",
  listening: "Listening: read the text aloud",
  grading: "Assessing",
};

export function Pronounce({ client, offers, microphone }) {
  const strategies = offers.pronunciation;
  const [name, setName] = useState(strategies.find(({ fault }) => !fault)?.name ?? "");
  const languages = languageChoices(strategies.find((strategy) => strategy.name === name)?.languages);
  const [chosen, setLanguage] = useState("en-US");
  const language = languages.some(({ code }) => code === chosen) ? chosen : languages[0].code;
  const [text, setText] = useState(EXAMPLES[0]);
  const assessment = useAssessment(client, microphone);
  if (!name) return html`<p>This app has no strategy for pronunciation assessment.</p>`;

  const busy = assessment.phase === "grading";
  const options = {
    strategy: name,
    language,
    referenceText: text,
    enableMiscue: true,
    enableProsodyAssessment: language.toLowerCase() === "en-us", // Vendors support it only for en-US.
  };
  return html`
    <section class="pronounce">
      <p>Choose a text or write your own. Hold the button while you read it aloud.</p>
      <div class="pronounce-choices">
        <${Choice} label="Strategy" value=${name} onPick=${setName}>
          ${strategies.map(
            (offer) => html`<option value=${offer.name} disabled=${Boolean(offer.fault)}>${offer.name}</option>`,
          )}
        <//>
        <${Choice} label="Language" value=${language} onPick=${setLanguage}>
          ${languages.map(({ code, title }) => html`<option value=${code}>${title}</option>`)}
        <//>
        ${language.startsWith("en") &&
        html`<${Choice} wide label="Example" value=${EXAMPLES.includes(text) ? text : ""} onPick=${setText}>
          <option value="" disabled>Your own text</option>
          ${EXAMPLES.map((example) => html`<option value=${example}>${example}</option>`)}
        <//>`}
      </div>
      <label>
        Text to read
        <textarea rows="3" maxlength="1000" value=${text} onInput=${(event) => setText(event.currentTarget.value)} />
      </label>
      <${HoldButton}
        label="Hold to record"
        pressed=${assessment.phase === "listening" || assessment.phase === "opening"}
        disabled=${busy || !/[\p{L}\p{N}]/u.test(text)}
        onStart=${assessment.begin}
        onStop=${() => assessment.finish(options)}
      />
      <p class="pronounce-phase" aria-live="polite" aria-busy=${busy ? "true" : "false"}>${PHASES[assessment.phase]}</p>
      ${assessment.fault && html`<${Alert} fault=${assessment.fault} onClose=${assessment.dismiss} />`}
      ${assessment.result && html`<${AssessmentResult} result=${assessment.result} />`}
    </section>
  `;
}

function Choice({ label, value, onPick, wide = false, children }) {
  return html`
    <label class=${wide ? "wide" : ""}>
      ${label}
      <select value=${value} onChange=${(event) => onPick(event.currentTarget.value)}>${children}</select>
    </label>
  `;
}

/** State of one assessment: recording, sending, result. */
function useAssessment(client, microphone) {
  const [phase, setPhase] = useState("ready");
  const [fault, setFault] = useState(null);
  const [result, setResult] = useState(null);
  const held = useRef(false); // the current value, not that of the last rendering
  const recording = useRef(null);
  const pending = useRef(null);
  useEffect(() => () => pending.current?.abort(), []);

  const reportingErrors = async (work) => {
    try {
      await work();
    } catch (error) {
      if (error.name === "AbortError") return;
      setFault(error);
      setPhase("ready");
    }
  };
  const begin = () =>
    reportingErrors(async () => {
      [setFault, setResult].forEach((set) => set(null));
      setPhase("opening");
      held.current = true;
      await microphone.open();
      if (!held.current) throw new MicrophoneFault("early");
      recording.current = microphone.record();
      setPhase("listening");
    });
  const finish = (options) =>
    reportingErrors(async () => {
      held.current = false;
      const heard = recording.current;
      recording.current = null;
      if (heard === null) return; // `begin` reports that it was too early.
      await heard.stop();
      if (heard.seconds < SHORTEST_S) throw new MicrophoneFault("short");
      setPhase("grading");
      pending.current = new AbortController();
      setResult(await client.assess(heard, { ...options, signal: pending.current.signal }));
      setPhase("ready");
    });
  return { phase, fault, result, begin, finish, dismiss: () => setFault(null) };
}
