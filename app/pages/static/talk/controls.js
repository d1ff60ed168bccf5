// What the user does in a conversation: type, hold to talk, interrupt, pull the plug, begin anew.

import { html, useState } from "../vendor/preact.js";
import { HoldButton } from "./hold.js";

export function Controls({ talk, choices }) {
  return html`
    <${Typing} busy=${talk.ear.held} onSend=${(text) => talk.type(text)} />
    <div class="row">
      <${HoldButton}
        label="Hold to talk"
        pressed=${talk.ear.held}
        disabled=${!choices.hears}
        describedBy="talk-how"
        onStart=${() => talk.hold()}
        onStop=${() => talk.letGo()}
      />
      <${Action} label="Interrupt" enabled=${talk.interruptible} onAct=${() => talk.interrupt()} />
      <${Action} label="Pull the plug" enabled=${talk.plugged} onAct=${() => talk.pullPlug()} />
      <${Action} label="New conversation" enabled=${talk.turns.length > 0} onAct=${() => talk.renew()} />
    </div>
    <p id="talk-how" class="how">
      ${choices.hears
        ? "Hold it with the pointer, or with Space or Enter, while you speak. It interrupts the answer."
        : "This strategy cannot hear: choose another to talk to it."}
    </p>
  `;
}

function Typing({ busy, onSend }) {
  const [text, setText] = useState("");
  const disabled = busy || text.trim() === "";
  const send = (event) => {
    event.preventDefault();
    if (disabled) return;
    setText("");
    onSend(text.trim());
  };
  const onKeyDown = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
  };
  return html`<form class="typing" onSubmit=${send}>
    <label for="message">Message</label>
    <textarea
      id="message"
      rows="2"
      autocomplete="off"
      enterkeyhint="send"
      value=${text}
      onInput=${(event) => setText(event.currentTarget.value)}
      onKeyDown=${onKeyDown}
    />
    <button type="submit" aria-disabled=${disabled ? "true" : null}>Send</button>
  </form>`;
}

/** It says that it is disabled and stays where it is: who has just pressed it keeps the focus. */
function Action({ label, enabled, onAct }) {
  return html`<button
    type="button"
    class="secondary"
    aria-disabled=${enabled ? null : "true"}
    onClick=${() => enabled && onAct()}
  >
    ${label}
  </button>`;
}
