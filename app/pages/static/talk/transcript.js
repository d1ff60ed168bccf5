// What was said, turn by turn.

import { html, useLayoutEffect, useRef } from "../vendor/preact.js";

const NEAR = 80; // pixels from the end: who has scrolled up further is reading
const STATES = { interrupted: "Interrupted: this much was heard.", failed: "This answer broke off." };
const EMPTY = { interrupted: "Interrupted before a word was heard.", failed: "There was no answer." };

export function Transcript({ turns }) {
  const log = useRef(null);
  const follows = useRef(true);
  useLayoutEffect(() => {
    if (follows.current) log.current.scrollTop = log.current.scrollHeight;
  });
  const onScroll = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR;
  };
  // it scrolls, so it must be reachable by key
  return html`<div class="transcript" role="log" aria-label="Conversation" tabindex="0" ref=${log} onScroll=${onScroll}>
    ${turns.length === 0 && html`<div class="hint">Say something, or type it: the answer appears here.</div>`}
    ${turns.map(
      ({ key, user, answer, languages: [asked, answered] }) => html`
        <${Said} key=${`${key}-user`} role="user" title="You" said=${user} language=${asked} />
        <${Said} key=${`${key}-answer`} role="assistant" title="Parley" said=${answer} language=${answered} />
      `,
    )}
  </div>`;
}

/** `aria-busy`: a screen reader waits until it is whole. */
function Said({ role, title, language, said: { paragraphs, state, notes = [] } }) {
  const running = state === "running";
  const states = role === "user" ? {} : paragraphs.length ? STATES : EMPTY;
  return html`<article data-role=${role} data-state=${state} aria-label=${title} aria-busy=${running ? "true" : "false"}>
    <span class="who" aria-hidden="true">${title}</span>
    ${paragraphs.map((text, index) => html`<p key=${index} lang=${language}>${text}</p>`)}
    ${running && paragraphs.length === 0 && html`<span class="waits" aria-hidden="true">…</span>`}
    ${[states[state], ...notes].filter(Boolean).map((note) => html`<small key=${note}>${note}</small>`)}
  </article>`;
}
