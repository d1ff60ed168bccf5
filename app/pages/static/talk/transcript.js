// The transcript of the conversation.

import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { IconButton } from "./icons.js";
import { VoiceBars } from "./voice_bars.js";

const NEAR = 80; // pixels; a user who has scrolled up further is reading earlier messages
const STATES = { interrupted: "Interrupted. Only this part was heard.", failed: "This answer broke off." };
const EMPTY = { interrupted: "Interrupted before any of it was heard.", failed: "There was no answer." };
const EXAMPLES = ["What is the capital of Japan?", "Tell me a story about the sea.", "Let us practise ordering a coffee."];
const COPIED_MS = 2_000;

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

export function Transcript({ talk, player }) {
  const log = useRef(null);
  const follows = useRef(true);
  useLayoutEffect(() => {
    if (follows.current) log.current.scrollTop = log.current.scrollHeight;
  });
  const onScroll = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR;
  };
  // It scrolls, so it must be reachable by keyboard.
  return html`<div class="transcript" role="log" aria-label="Conversation" tabindex="0" ref=${log} onScroll=${onScroll}>
    <div class="turns">
      ${talk.turns.length === 0 && html`<${Welcome} talk=${talk} player=${player} />`}
      ${talk.turns.map(
        (turn) => html`
          <${Message} key=${`${turn.key}-user`} role="user" title="You" content=${turn.user} language=${turn.languages[0]} />
          <${Message} key=${`${turn.key}-answer`} role="assistant" title="Parley" content=${turn.answer} language=${turn.languages[1]}>
            <${AnswerActions} talk=${talk} turn=${turn} />
          <//>
        `,
      )}
    </div>
  </div>`;
}

function Welcome({ talk, player }) {
  return html`<div class="welcome">
    <${VoiceBars} state="idle" level=${0} player=${player} visemes=${[]} large />
    <h2>Say or type something</h2>
    <p>The answer appears here and is read aloud.</p>
    <div class="examples">
      ${EXAMPLES.map(
        (example) => html`<button key=${example} type="button" class="quiet" onClick=${() => talk.type(example)}>${example}</button>`,
      )}
    </div>
  </div>`;
}

/** With `aria-busy`, screen readers wait until the message is complete. */
function Message({ role, title, language, content: { paragraphs, state, notes = [] }, children }) {
  const running = state === "running";
  const states = role === "user" ? {} : paragraphs.length ? STATES : EMPTY;
  return html`<article data-role=${role} data-state=${state} aria-label=${title} aria-busy=${running ? "true" : "false"}>
    ${paragraphs.map((text, index) => html`<p key=${index} lang=${language}>${text}</p>`)}
    ${running && paragraphs.length === 0 && html`<span class="waits" aria-hidden="true"><i /><i /><i /></span>`}
    ${[states[state], ...notes].filter(Boolean).map((note) => html`<small key=${note}>${note}</small>`)}
    ${children}
  </article>`;
}

function AnswerActions({ talk, turn }) {
  const [copied, setCopied] = useState(false);
  const text = turn.answer.paragraphs.join("\n\n");
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  return html`<div class="answer-actions">
    <time datetime=${turn.at.toISOString()}>${clock.format(turn.at)}</time>
    ${talk.canReplay(turn) && html`<${IconButton} icon="replay" label="Replay" onAct=${() => talk.replay(turn)} />`}
    ${navigator.clipboard && text && html`<${IconButton} icon="copy" label="Copy" onAct=${copy} />`}
    <span aria-live="polite">${copied && "Copied"}</span>
  </div>`;
}
