// The attempts of a request: which strategy recognized, answered and spoke, and why others failed.

import { html } from "../vendor/preact.js";
import { duration } from "./formats.js";
import { reasonOf } from "./reasons.js";
import { marksOf } from "./spans.js";

const STAGES = { stt: "Recognition", llm: "Language model", tts: "Voice", assess: "Assessment" };

/** `configUrl(strategy)` returns the address of a strategy's config in the console, or null. */
export function Attempts({ record, configUrl }) {
  const rows = attemptsOf(record);
  if (rows.length === 0) return null;
  return html`<section>
    <h3 id="attempts-title">Attempts</h3>
    <ol class="attempts" aria-labelledby="attempts-title">
      ${rows.map((row, at) => html`<${Attempt} key=${at} ...${row} configUrl=${configUrl} />`)}
    </ol>
  </section>`;
}

function Attempt({ stage, strategy, outcome, ms, failure, configUrl }) {
  const config = strategy && configUrl(strategy);
  const name = html`<code>${strategy}</code>`;
  return html`<li class=${`attempt-${outcome}`}>
    <span class="attempt-mark" aria-hidden="true">${outcome === "won" ? "✓" : "✗"}</span>
    <span class="attempt-stage">${STAGES[stage] ?? stage}</span>
    ${strategy && (config ? html`<a href=${config}>${name}</a>` : name)}
    <span class="attempt-outcome">${outcome === "won" ? "succeeded" : "failed"}${ms !== undefined && html` <span class="number">${duration(ms)}</span>`}</span>
    ${failure && html`<${Reason} failure=${failure} config=${config} />`}
  </li>`;
}

/** Why an attempt or a stream failed: in words, and as the server said it. */
export function Reason({ failure, config }) {
  const { text, advice } = reasonOf(failure);
  return html`<div class="reason">
    <p><strong>${text}</strong> ${advice}</p>
    <code>${failure.message}</code>
    ${config && html`<p><a href=${config}>Open its config in the console</a></p>`}
  </div>`;
}

/** Return `[{stage, strategy, outcome, ms, failure}]`. The server names the strategy of those that failed and of the model. */
function attemptsOf(record) {
  const { end } = record;
  const marks = marksOf(record);
  const rows = record.failures.map((failure) => ({
    stage: failure.stage,
    strategy: failure.strategy,
    outcome: "failed",
    ms: failure.elapsed_ms,
    failure,
  }));
  if (marks.stt !== undefined) rows.push({ stage: "stt", outcome: "won", ms: spanOf(marks.stt, marks.input) });
  if (end?.strategy) rows.push({ stage: "llm", strategy: end.strategy, outcome: "won", ms: spanOf(marks.first_token, marks.stt ?? marks.input) });
  if (end?.speech) {
    const message = `${end.speech.message}. From paragraph ${end.speech.index + 1} on, the answer has no audio.`;
    rows.push({ stage: "tts", outcome: "failed", failure: { ...end.speech, message } });
  } else if (end && marks.first_audio !== undefined) {
    rows.push({ stage: "tts", outcome: "won", ms: spanOf(marks.first_audio, marks.first_sentence) });
  }
  const order = Object.keys(STAGES);
  return rows.sort((one, other) => order.indexOf(one.stage) - order.indexOf(other.stage));
}

const spanOf = (to, from) => (to === undefined || from === undefined ? undefined : Math.max(0, to - from));
