// How a text was read: its words and sounds with their scores, told by colour, by a sign and in words.

import { html } from "../vendor/preact.js";

const GOOD = 80;
const FAIR = 60;
const SIGNS = { good: "✓", fair: "~", poor: "✗", omitted: "−", inserted: "+" };
const TITLES = {
  good: `good: ${GOOD} and more`,
  fair: `fair: from ${FAIR} on`,
  poor: "poor",
  omitted: "left out",
  inserted: "put in",
};
const SCORES = {
  PronScore: "Overall",
  AccuracyScore: "Accuracy",
  FluencyScore: "Fluency",
  CompletenessScore: "Completeness",
  ProsodyScore: "Prosody",
};

/** `result`: the answer of an assessment with the granularity of phonemes and scores up to 100. */
export function Marks({ result }) {
  const best = result.raw_data.NBest?.[0] ?? {};
  const scores = scoresOf(best);
  const words = best.Words ?? [];
  return html`
    <section class="marks" aria-label="How it was read">
      <p>Heard: <q>${result.text}</q></p>
      <dl class="marks-scores">
        ${Object.entries(SCORES).map(
          ([name, title]) =>
            scores[name] !== undefined && html`<div><dt>${title}</dt><dd><${Score} of=${scores[name]} /></dd></div>`,
        )}
      </dl>
      <ol class="marks-words" aria-label="Words">${words.map((word) => html`<${Word} word=${word} />`)}</ol>
      <ul class="marks-legend" aria-label="Signs">
        ${Object.entries(TITLES).map(
          ([mark, title]) => html`<li><span class=${`mark-${mark}`}>${SIGNS[mark]}</span> ${title}</li>`,
        )}
      </ul>
    </section>
  `;
}

function Score({ of: score }) {
  const mark = markOf(score);
  return html`
    <span class=${`mark-${mark}`}>${Math.round(score)} <span aria-hidden="true">${SIGNS[mark]}</span></span>
  `;
}

function Word({ word }) {
  const { AccuracyScore: score, ErrorType: error } = scoresOf(word);
  const mark = { Omission: "omitted", Insertion: "inserted" }[error] ?? markOf(score);
  const told = mark === "omitted" || mark === "inserted" ? TITLES[mark] : `${mark}, ${Math.round(score)}`;
  return html`
    <li class=${`mark-${mark}`} data-mark=${mark}>
      <span class="marks-word">${word.Word}</span> <span aria-hidden="true">${SIGNS[mark]}</span>${" "}
      <small>${told}</small>
      ${word.Phonemes?.length > 0 && html`<span class="marks-sounds">${word.Phonemes.map(sound)}</span>`}
    </li>
  `;
}

function sound(phoneme) {
  const score = scoresOf(phoneme).AccuracyScore;
  const mark = markOf(score);
  return html`
    <span class=${`mark-${mark}`} data-mark=${mark}>
      ${phoneme.Phoneme} <span aria-hidden="true">${SIGNS[mark]}</span> <small>${Math.round(score)}</small>
    </span>
  `;
}

/** Scores stand under a name of their own, or beside what they are scores of: vendors do both. */
const scoresOf = (part) => part.PronunciationAssessment ?? part;

function markOf(score) {
  const shown = Math.round(score);
  return shown >= GOOD ? "good" : shown >= FAIR ? "fair" : "poor";
}
