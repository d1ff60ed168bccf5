// The pronunciation tab: the user reads a sentence aloud, and sees how clear each word and sound was (§4.18).

import { html, useMemo, useState } from "../vendor/preact.js";
import { Alert } from "../talk/errors.js";
import { HoldButton } from "../talk/hold_button.js";
import { Icon } from "../talk/icons.js";
import { languageChoices } from "../talk/languages.js";
import { useAssessment } from "./assessing.js";
import { usePlayback, voiceOf } from "./listening.js";
import { Example, Play, Result, Unmarked } from "./result.js";
import { nextSentence, SENTENCES } from "./sentences.js";

const PHASES = {
  ready: "Hold the microphone and read the sentence aloud.",
  opening: "Opening the microphone…",
  listening: "Listening… release when you have read it",
  grading: "Assessing…",
};

/** `client` and `microphone`: those of the conversation. */
export function Pronounce({ client, offers, microphone }) {
  const strategies = offers.pronunciation;
  const [name, setName] = useState(strategies.find(({ fault }) => !fault)?.name ?? "");
  const languages = languageChoices(strategies.find((strategy) => strategy.name === name)?.languages);
  const [chosen, setLanguage] = useState("en-US");
  const language = languages.some(({ code }) => code === chosen) ? chosen : languages[0].code;
  const [text, setText] = useState(SENTENCES[0].text);
  const assessment = useAssessment(client, microphone);
  const playback = usePlayback(assessment.report);
  const voice = useVoice(client, offers, language);
  if (!name) return html`<p class="pronounce">This app has no strategy for pronunciation assessment.</p>`;

  const { phase, reading } = assessment;
  const english = language.startsWith("en");
  const options = {
    strategy: name,
    language,
    referenceText: text,
    enableMiscue: true,
    enableProsodyAssessment: language.toLowerCase() === "en-us", // Vendors support it only for en-US.
  };
  const change = (another) => {
    assessment.forget();
    setText(another);
  };
  const begin = () => {
    playback.stop();
    assessment.begin();
  };
  return html`
    <section class="pronounce">
      <div class="pronounce-card">
        ${english && html`<p class="practises">${SENTENCES.find((each) => each.text === text)?.practises ?? "Your own sentence"}</p>`}
        <label>
          <span class="unseen">Text to read</span>
          <textarea class="sentence" rows="2" maxlength="1000" lang=${language} value=${text} onInput=${(event) => change(event.currentTarget.value)} />
        </label>
        <div class="pronounce-row">
          <span>${voice && html`<${Play} name="Listen" at="first" playback=${playback} soundOf=${() => voice(text)} />`}</span>
          <${HoldButton}
            icon=${html`<${Icon} name="microphone" />`}
            label="Hold to record"
            pressed=${phase === "listening" || phase === "opening"}
            level=${() => microphone.level}
            disabled=${phase === "grading" || !/[\p{L}\p{N}]/u.test(text)}
            describedBy="pronounce-phase"
            onStart=${begin}
            onStop=${() => assessment.finish(options)}
          />
          <span>${english && html`<button type="button" class="quiet" onClick=${() => change(nextSentence(text))}>Next sentence</button>`}</span>
        </div>
        <p class="pronounce-phase" id="pronounce-phase" aria-live="polite" aria-busy=${phase === "grading" ? "true" : "false"}>${PHASES[phase]}</p>
      </div>
      ${assessment.fault && html`<${Alert} fault=${assessment.fault} onClose=${() => assessment.report(null)} />`}
      ${reading && phase === "ready"
        ? html`<${Result} key=${reading.number} reading=${reading} voice=${voice} playback=${playback} onAgain=${assessment.forget} onNext=${() => change(nextSentence(text))} />`
        : html`<${Expected} phase=${phase} text=${text} />`}
      <details class="pronounce-choices">
        <summary>Language and strategy</summary>
        <div>
          <${Choice} label="Language" value=${language} onPick=${setLanguage}>
            ${languages.map(({ code, title }) => html`<option key=${code} value=${code}>${title}</option>`)}
          <//>
          <${Choice} label="Strategy" value=${name} onPick=${setName}>
            ${strategies.map((offer) => html`<option key=${offer.name} value=${offer.name} disabled=${Boolean(offer.fault)}>${offer.name}</option>`)}
          <//>
        </div>
      </details>
    </section>
  `;
}

/** What will be here, while there is no result of what one reads. */
const Expected = ({ phase, text }) =>
  phase === "ready"
    ? html`<div class="expected">
        <h2>Example</h2>
        <${Example} />
        <p>Each word that you read and each of its sounds appears here like this, with what to practise.</p>
      </div>`
    : html`<div class="expected">
        <${Unmarked} text=${text} />
        <p>${phase === "grading" ? "Comparing each sound with the sentence…" : "The words are marked after you release the button."}</p>
      </div>`;

/** Returns a function that returns a text as a sound, or null if the app has no voice for this language. */
function useVoice(client, offers, language) {
  const matches = ({ fault, languages }) =>
    !fault && (!languages || languages.some((code) => language.toLowerCase().startsWith(code.toLowerCase())));
  const strategy = offers.speech.find(matches)?.name;
  return useMemo(() => (strategy ? voiceOf(client, strategy) : null), [client, strategy]);
}

function Choice({ label, value, onPick, children }) {
  return html`
    <label>
      ${label}
      <select value=${value} onChange=${(event) => onPick(event.currentTarget.value)}>${children}</select>
    </label>
  `;
}
