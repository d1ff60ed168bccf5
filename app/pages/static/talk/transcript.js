// The transcript of the conversation. It follows a growing answer for as long as the reader is at its end.

import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { Icon } from "./icons.js";
import { AnswerActions, Message } from "./message.js";
import { Welcome } from "./welcome.js";

const NEAR = 80; // pixels; a user who has scrolled up further is reading earlier messages

/** `welcome`: what an empty conversation shows. `onInside` is called with the turn whose details are to be shown. */
export function Transcript({ talk, player, welcome, onInside }) {
  const log = useRef(null);
  const seen = useRef({ follows: true, turns: 0, height: 0 });
  const [behind, setBehind] = useState(false);
  const toEnd = () => (log.current.scrollTop = log.current.scrollHeight);
  useLayoutEffect(() => {
    const now = seen.current;
    const { scrollHeight } = log.current;
    if (talk.turns.length > now.turns) now.follows = true; // The reader has said something.
    if (now.follows) toEnd();
    else if (scrollHeight > now.height) setBehind(true);
    [now.turns, now.height] = [talk.turns.length, scrollHeight];
  });
  const onScroll = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
    seen.current.follows = scrollHeight - scrollTop - clientHeight < NEAR;
    if (seen.current.follows) setBehind(false);
  };
  // It scrolls, so it must be reachable by keyboard.
  return html`<div class="transcript">
    <div class="log" role="log" aria-label="Conversation" tabindex="0" ref=${log} onScroll=${onScroll}>
      <div class="turns">
        ${talk.turns.length === 0 && html`<${Welcome} talk=${talk} player=${player} ...${welcome} />`}
        ${talk.turns.map(
          (turn) => html`
            <${Message} key=${`${turn.key}-user`} role="user" title="You" content=${turn.user} language=${turn.languages[0]} />
            ${!(turn.listening && turn.running) &&
            !turn.unrecognized &&
            html`<${Message} key=${`${turn.key}-answer`} role="assistant" title="Parley" content=${turn.answer} language=${turn.languages[1]}>
              <${AnswerActions} talk=${talk} turn=${turn} onInside=${() => onInside(turn)} />
            <//>`}
          `,
        )}
      </div>
    </div>
    ${behind && html`<button type="button" class="quiet new-messages" onClick=${toEnd}><${Icon} name="down" />New messages</button>`}
  </div>`;
}
