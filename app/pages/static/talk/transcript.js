// The transcript of the conversation.

import { html, useLayoutEffect, useRef } from "../vendor/preact.js";

const NEAR = 80; // pixels; a user who has scrolled up further is reading earlier messages
const STATES = { interrupted: "Interrupted. Only this part was heard.", failed: "This answer broke off." };
const EMPTY = { interrupted: "Interrupted before any of it was heard.", failed: "There was no answer." };

export function Transcript({ turns }) {
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
    ${turns.length === 0 && html`<div class="hint">Say or type something. The answer appears here.</div>`}
    ${turns.map(
      ({ key, user, answer, languages: [inputLanguage, answerLanguage] }) => html`
        <${Message} key=${`${key}-user`} role="user" title="You" content=${user} language=${inputLanguage} />
        <${Message} key=${`${key}-answer`} role="assistant" title="Parley" content=${answer} language=${answerLanguage} />
      `,
    )}
  </div>`;
}

/** With `aria-busy`, screen readers wait until the message is complete. */
function Message({ role, title, language, content: { paragraphs, state, notes = [] } }) {
  const running = state === "running";
  const states = role === "user" ? {} : paragraphs.length ? STATES : EMPTY;
  return html`<article data-role=${role} data-state=${state} aria-label=${title} aria-busy=${running ? "true" : "false"}>
    <span class="who" aria-hidden="true">${title}</span>
    ${paragraphs.map((text, index) => html`<p key=${index} lang=${language}>${text}</p>`)}
    ${running && paragraphs.length === 0 && html`<span class="waits" aria-hidden="true">…</span>`}
    ${[states[state], ...notes].filter(Boolean).map((note) => html`<small key=${note}>${note}</small>`)}
  </article>`;
}
