// The result of a reading: overall scores, the words as tiles with their sounds, and how to say the weakest of them.

import { html, useMemo, useState } from "../vendor/preact.js";
import { gradesOf, MARKS, toPractise, weakest } from "./grades.js";
import { recorded } from "./listening.js";
import { alone } from "./sounds.js";

const RADIUS = 42;
const CIRCLE = 2 * Math.PI * RADIUS;
const VERDICTS = {
  good: "That was clear",
  fair: "Almost there",
  poor: "Let us try that again",
};
const NAMED = 4; // words that the verdict names
const EXAMPLE = [
  ["I", "good", "aɪ"],
  ["think", "poor", "θ", "ɪ", "ŋ", "k"],
  ["it", "good", "ɪ", "t"],
  ["works", "fair", "w", "ɝ", "k", "s"],
];

/** `reading`: `{text, result, recording}`. `voice`: returns a text as a sound, or null if the app has no voice. */
export function Result({ reading, voice, playback, onAgain, onNext }) {
  const { overall, scores, words } = useMemo(() => gradesOf(reading.result), [reading]);
  const [chosen, setChosen] = useState(weakest(words));
  const word = words[chosen];
  return html`
    <section class="assessment" aria-label="Assessment">
      <div class="verdict">
        <${Ring} ...${overall} />
        <div>
          <h2>${VERDICTS[overall.mark]}</h2>
          <p>${advice(words)}</p>
        </div>
      </div>
      <ul class="scores" aria-label="Scores">${scores.map((each) => html`<${Score} key=${each.title} ...${each} />`)}</ul>
      <ol class="tiles" aria-label="Words">
        ${words.map((each, at) => html`<${Tile} key=${at} word=${each} chosen=${at === chosen} onChoose=${() => setChosen(at)} />`)}
      </ol>
      <p class="listen">
        ${voice && html`<${Play} name="Listen" at="sentence" playback=${playback} soundOf=${() => voice(reading.text)} />`}
        <${Play} name="Your recording" at="recording" playback=${playback} soundOf=${() => recorded(reading.recording)} />
        <button type="button" class="quiet" onClick=${onAgain}>Try again</button>
        <button type="button" onClick=${onNext}>Next sentence</button>
      </p>
      ${word && html`<${Practice} key=${chosen} word=${word} reading=${reading} voice=${voice} playback=${playback} />`}
      <${Raw} result=${reading.result} words=${words} />
    </section>
  `;
}

function advice(words) {
  const weak = toPractise(words);
  if (weak.length === 0) return "Every word was clear.";
  const named = weak.slice(0, NAMED).map(({ text }) => text).join(", ");
  return `To practise: ${named}${weak.length > NAMED ? ` and ${weak.length - NAMED} more` : ""}.`;
}

/** The picture of a result, before there is one. The caption below it says that it is an example. */
export const Example = () => html`<div class="tiles example" aria-hidden="true">
  ${EXAMPLE.map(
    ([text, mark, ...sounds]) => html`<span key=${text} class=${`tile mark-${mark}`}>
      <span class="tile-word">${text} <span class="tile-sign">${MARKS[mark].sign}</span></span>
      <span class="tile-sounds">${sounds.map((sign) => html`<span key=${sign} class="sound">${sign}</span>`)}</span>
    </span>`,
  )}
</div>`;

/** The words of the sentence while one reads it: none of them has been assessed. */
export const Unmarked = ({ text }) => html`<div class="tiles" aria-hidden="true">
  ${text.trim().split(/\s+/).map((word, at) => html`<span key=${at} class="tile unmarked"><span class="tile-word">${word}</span></span>`)}
</div>`;

function Ring({ score, mark }) {
  const { title } = MARKS[mark];
  return html`<svg class=${`ring mark-${mark}`} viewBox="0 0 100 100" role="img" aria-label=${`Overall ${score} of 100, ${title}`}>
    <circle class="ring-back" cx="50" cy="50" r=${RADIUS} />
    <circle class="ring-score" cx="50" cy="50" r=${RADIUS} stroke-dasharray=${`${(CIRCLE * score) / 100} ${CIRCLE}`} />
    <text x="50" y="52">${score}</text>
    <text class="ring-word" x="50" y="68">${title}</text>
  </svg>`;
}

function Score({ title, score, mark }) {
  return html`<li class=${`mark-${mark}`}>
    <span class="score-title">${title}</span>
    <span class="score-line" aria-hidden="true"><i style=${{ width: `${score}%` }} /></span>
    <span class="score-value">${score} <span class="score-word">${MARKS[mark].sign} ${MARKS[mark].title}</span></span>
  </li>`;
}

/** A word with its score by colour, sign and in words; beneath it its sounds, of which the weak ones are marked. */
function Tile({ word, chosen, onChoose }) {
  const { text, mark, score, sounds } = word;
  const { sign, title } = MARKS[mark];
  const counts = mark !== "omitted" && mark !== "inserted";
  return html`<li>
    <button type="button" class=${`tile mark-${mark}`} data-mark=${mark} aria-pressed=${chosen ? "true" : "false"} onClick=${onChoose}>
      <span class="tile-word"><span class="tile-text">${text}</span> <span class="tile-sign" aria-hidden="true">${sign}</span></span>
      <span class="tile-sounds">${sounds.map((sound, at) => html`<${Sound} key=${at} ...${sound} />`)}</span>
      <small>${title}${counts ? `, ${score}` : ""}</small>
    </button>
  </li>`;
}

function Sound({ sign, mark }) {
  if (mark === "good") return html`<span class="sound">${sign}</span>`;
  return html`<span class=${`sound mark-${mark}`} data-mark=${mark}>${sign}<span class="unseen"> ${MARKS[mark].title}</span></span>`;
}

/** How to say one word: its sounds that were not clear, what was heard instead, and how they are made. */
function Practice({ word, reading, voice, playback }) {
  const weak = word.sounds.filter(({ mark }) => mark !== "good");
  const said = word.mark !== "omitted" && word.to_s > word.from_s;
  const signs = word.sounds.map(({ sign }) => sign);
  const full = alone(word.text, signs);
  return html`<section class="practice" aria-label="Practice">
    <h3>${word.text} ${word.sounds.length > 0 && html`<span class="ipa">/${signs.join("")}/</span>`}</h3>
    ${full && html`<p>This is its short form, as in fluent speech. Alone, it is said <span class="ipa">/${full}/</span>.</p>`}
    <p class="listen">
      ${voice && html`<${Play} name="Listen to the word" at="word" playback=${playback} soundOf=${() => voice(word.text)} />`}
      ${said && html`<${Play} name="Your word" at="own word" playback=${playback} soundOf=${() => recorded(reading.recording, word)} />`}
    </p>
    ${word.mark === "omitted" && html`<p>This word was not heard. Read the whole sentence.</p>`}
    ${word.mark === "inserted" && html`<p>This word is not in the sentence.</p>`}
    ${said && weak.length === 0 && html`<p>All sounds of this word were clear.</p>`}
    <ul class="hints">
      ${weak.map(
        ({ sign, example, hint, mark, heard }, at) => html`<li key=${at}>
          <span class=${`hint-sign mark-${mark}`}>${sign}</span>
          <span>
            ${heard && html`<strong>You said <span class="ipa">${heard.sign}</span>, try <span class="ipa">${sign}</span>.</strong> `}
            ${hint} ${example && html`<span class="muted">As in <em>${example}</em>.</span>`}
          </span>
        </li>`,
      )}
    </ul>
  </section>`;
}

/** A button that plays a sound, or stops it while it plays. */
export function Play({ name, at, playback, soundOf }) {
  const plays = playback.playing === at;
  return html`<button type="button" class="quiet play" aria-pressed=${plays ? "true" : "false"} onClick=${() => playback.play(at, soundOf)}>
    <span aria-hidden="true">${plays ? "■" : "▶"}</span> ${name}
  </button>`;
}

/** What the vendor has sent, for developers. */
function Raw({ result, words }) {
  const sounds = words.flatMap((word) => word.sounds.map((sound) => ({ ...sound, word: word.text })));
  return html`<details class="raw">
    <summary>For developers: phonemes and the raw result</summary>
    <p>Recognized text: <q>${result.text}</q></p>
    ${sounds.length > 0 &&
    html`<table>
      <thead><tr><th scope="col">Word</th><th scope="col">Phoneme</th><th scope="col">IPA</th><th scope="col">Score</th></tr></thead>
      <tbody>${sounds.map(({ word, name, sign, score }, at) => html`<tr key=${at}><td>${word}</td><td><code>${name}</code></td><td>${sign}</td><td class="number">${score}</td></tr>`)}</tbody>
    </table>`}
    <pre class="code" tabindex="0" role="region" aria-label="Raw result"><code>${JSON.stringify(result.raw_data, null, 2)}</code></pre>
  </details>`;
}
