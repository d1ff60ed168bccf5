// The result of an assessment: words and sounds with their scores, shown by colour, by a sign and in words.

import { html } from "../vendor/preact.js";

const GOOD = 80;
const FAIR = 60;
const SIGNS = { good: "✓", fair: "~", poor: "✗", omitted: "−", inserted: "+" };
const TITLES = {
  good: `good: ${GOOD} or more`,
  fair: `fair: ${FAIR} to ${GOOD - 1}`,
  poor: "poor",
  omitted: "omitted",
  inserted: "inserted",
};
const SCORES = {
  PronScore: "Overall",
  AccuracyScore: "Accuracy",
  FluencyScore: "Fluency",
  CompletenessScore: "Completeness",
  ProsodyScore: "Prosody",
};

/** `result`: the response to an assessment with phoneme granularity and scores up to 100. */
export function AssessmentResult({ result }) {
  const best = result.raw_data.NBest?.[0] ?? {};
  const scores = scoresOf(best);
  const words = best.Words ?? [];
  return html`
    <section class="assessment" aria-label="Assessment">
      <p>Recognized text: <q>${result.text}</q></p>
      <dl class="assessment-scores">
        ${Object.entries(SCORES).map(
          ([name, title]) =>
            scores[name] !== undefined && html`<div><dt>${title}</dt><dd><${Score} of=${scores[name]} /></dd></div>`,
        )}
      </dl>
      <ol class="assessment-words" aria-label="Words">${words.map((word) => html`<${Word} word=${word} />`)}</ol>
      <ul class="assessment-legend" aria-label="Legend">
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
  const caption = mark === "omitted" || mark === "inserted" ? TITLES[mark] : `${mark}, ${Math.round(score)}`;
  return html`
    <li class=${`mark-${mark}`} data-mark=${mark}>
      <span class="assessment-word">${word.Word}</span> <span aria-hidden="true">${SIGNS[mark]}</span>${" "}
      <small>${caption}</small>
      ${word.Phonemes?.length > 0 && html`<span class="assessment-sounds">${word.Phonemes.map(sound)}</span>`}
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

/** Some vendors nest the scores under `PronunciationAssessment`, others put them into the object itself. */
const scoresOf = (part) => part.PronunciationAssessment ?? part;

function markOf(score) {
  const shown = Math.round(score);
  return shown >= GOOD ? "good" : shown >= FAIR ? "fair" : "poor";
}
