// The controls of a conversation: type, hold to talk, interrupt, drop the connection, start a new conversation.

import { html, useState } from "../vendor/preact.js";
import { HoldButton } from "./hold_button.js";

export function Controls({ talk, choices }) {
  return html`
    <${Typing} busy=${talk.recorder.held} onSend=${(text) => talk.type(text)} />
    <div class="row talking">
      <${HoldButton}
        label="Hold to talk"
        pressed=${talk.recorder.held}
        disabled=${!choices.hears}
        describedBy="talk-how"
        onStart=${() => talk.hold()}
        onStop=${() => talk.release()}
      />
      <${Action} label="Interrupt" enabled=${talk.interruptible} onAct=${() => talk.interrupt()} />
      <${Action} label="Disconnect" enabled=${talk.connected} onAct=${() => talk.dropConnection()} />
      <${Action} label="New conversation" enabled=${talk.turns.length > 0} onAct=${() => talk.startNew()} />
    </div>
    <p id="talk-how" class="how">
      ${choices.hears
        ? "Hold it with the pointer, Space or Enter while you speak. This interrupts the answer."
        : "This strategy does not accept audio. Choose another one to speak."}
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

/** A button that uses aria-disabled, so that it keeps the focus when a click disables it. */
function Action({ label, enabled, onAct }) {
  return html`<button
    type="button"
    class="secondary outline"
    aria-disabled=${enabled ? null : "true"}
    onClick=${() => enabled && onAct()}
  >
    ${label}
  </button>`;
}
