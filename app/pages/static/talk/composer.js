// What one says to the server: typing, the button to talk, and the state of the answer with the button to interrupt it.

import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { HoldButton } from "./hold_button.js";
import { Icon } from "./icons.js";
import { VoiceBars } from "./voice_bars.js";

const MAX_TEXT_PX = 160;

export function Composer({ talk, player, choices }) {
  const { held } = talk.recorder;
  return html`
    <div class="composer">
      <div class="state">
        <${VoiceBars} state=${talk.phase} level=${talk.recorder.level} player=${player} visemes=${talk.shapes} />
        <p role="status">${talk.status}</p>
        ${choices.hears &&
        html`<button
          type="button"
          class="quiet pill"
          aria-pressed=${talk.handsFree.on ? "true" : "false"}
          onClick=${() => talk.toggleHandsFree()}
        >
          <${Icon} name="hands" />Hands-free
        </button>`}
        <button
          type="button"
          class="quiet pill stop"
          aria-disabled=${talk.interruptible ? null : "true"}
          onClick=${() => talk.interruptible && talk.interrupt()}
        >
          <${Icon} name="stop" />Interrupt
        </button>
      </div>
      <div class="compose-row">
        <${Typing} busy=${held} onSend=${(text) => talk.type(text)} />
        <${HoldButton}
          icon=${html`<${Icon} name="microphone" />`}
          label="Hold to talk"
          pressed=${held}
          level=${talk.recorder.level}
          disabled=${!choices.hears}
          describedBy="talk-how"
          onStart=${() => talk.hold()}
          onStop=${() => talk.release()}
        />
      </div>
      <p id="talk-how" class="how">${hint(choices, held, talk.handsFree.on)}</p>
    </div>
  `;
}

function hint(choices, held, handsFree) {
  if (!choices.hears) return "This strategy does not accept audio. Choose another one in the settings to speak.";
  if (handsFree) return "Speak, and pause to send. Speak again to interrupt the answer.";
  if (held) return html`<strong>Release to send</strong>`;
  return html`<span>Hold the microphone while you speak.</span>${" "}
    <span class="keys">With the keyboard, hold Space on it. Enter sends what you type.</span>`;
}

function Typing({ busy, onSend }) {
  const [text, setText] = useState("");
  const field = useRef(null);
  useLayoutEffect(() => {
    field.current.style.height = "auto";
    field.current.style.height = `${Math.min(field.current.scrollHeight + 2, MAX_TEXT_PX)}px`;
  }, [text]);
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
    <textarea
      id="message"
      aria-label="Message"
      placeholder="Message"
      rows="1"
      autocomplete="off"
      enterkeyhint="send"
      ref=${field}
      value=${text}
      onInput=${(event) => setText(event.currentTarget.value)}
      onKeyDown=${onKeyDown}
    />
    <button type="submit" class="round" aria-label="Send" title="Send" aria-disabled=${disabled ? "true" : null}>
      <${Icon} name="send" />
    </button>
  </form>`;
}
