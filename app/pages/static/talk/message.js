// One message of the transcript, and what can be done with an answer.

import { clockOf } from "../shared/times.js";
import { html, useState } from "../vendor/preact.js";
import { Icon, IconButton } from "./icons.js";

const STATES = { interrupted: "Interrupted. Only this part was heard.", failed: "This answer broke off." };
const EMPTY = { interrupted: "Interrupted before any of it was heard.", failed: "There was no answer." };
const UNHEARD = { complete: "Not recognized.", interrupted: "Interrupted before it was recognized." };
const COPIED_MS = 2_000;

const seconds = new Intl.NumberFormat(undefined, { minimumFractionDigits: 1, maximumFractionDigits: 1 });

const duration = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${seconds.format(ms / 1000)} s`);

/** With `aria-busy`, screen readers wait until the message is complete. */
export function Message({ role, title, language, content: { paragraphs, state, notes = [] }, children }) {
  const running = state === "running";
  const states = role === "user" ? (paragraphs.length ? {} : UNHEARD) : paragraphs.length ? STATES : EMPTY;
  return html`<article data-role=${role} data-state=${state} aria-label=${title} aria-busy=${running ? "true" : "false"}>
    ${paragraphs.map((text, index) => html`<p key=${index} lang=${language}>${text}</p>`)}
    ${running && paragraphs.length === 0 && html`<span class="dots" aria-hidden="true"><i /><i /><i /></span>`}
    ${[states[state], ...notes].filter(Boolean).map((note) => html`<small key=${note}>${note}</small>`)}
    ${children}
  </article>`;
}

/** `onInside` opens the details of the answer. */
export function AnswerActions({ talk, turn, onInside }) {
  const [copied, setCopied] = useState(false);
  const text = turn.answer.paragraphs.join("\n\n");
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  return html`<div class="answer-actions">
    ${talk.canReplay(turn) && html`<${IconButton} icon="replay" label="Replay" onAct=${() => talk.replay(turn)} />`}
    ${navigator.clipboard && text && html`<${IconButton} icon="copy" label="Copy" onAct=${copy} />`}
    ${turn.details && html`<${Latency} turn=${turn} onInside=${onInside} />`}
    <time datetime=${turn.at.toISOString()}>${clockOf(turn.at)}</time>
    <span aria-live="polite">${copied && "Copied"}</span>
  </div>`;
}

function Latency({ turn, onInside }) {
  const waited = turn.latencyMs === null ? "" : duration(turn.latencyMs);
  const label = waited ? `Answered after ${waited}. Look inside this answer` : "Look inside this answer";
  return html`<button type="button" class="quiet latency" aria-label=${label} title=${label} onClick=${onInside}>
    <${Icon} name="timer" />${waited || "Look inside"}
  </button>`;
}
