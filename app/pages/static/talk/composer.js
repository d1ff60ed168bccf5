// One row for what one says to the server: the state of the conversation, typing, hands-free, the microphone, and one
// button that sends or, while there is an answer, interrupts it.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { HoldButton } from "./hold_button.js";
import { Icon } from "./icons.js";
import { Orb } from "./orb.js";

const MAX_TEXT_PX = 160;
const HAS_KEYS = matchMedia("(hover: hover)"); // On a phone, the focus would open the keyboard of the screen.
const STATUS = {
  idle: "Ready",
  opening: "Opening the microphone…",
  thinking: "Thinking…",
  speaking: "Speaking…",
  blocked: HAS_KEYS.matches ? "Click or press a key to hear the answer" : "Touch the page to hear the answer",
  lost: "Reconnecting…",
};

export function Composer({ talk, player, choices, onHandsFree }) {
  const { voice } = talk;
  const [text, setText] = useState("");
  const message = text.trim();
  const stops = talk.interruptible && message === "";
  const send = () => {
    if (message === "" || voice.held) return;
    setText("");
    talk.type(message);
  };
  const onSubmit = (event) => {
    event.preventDefault();
    send();
  };
  const ready = talk.phase === "idle" && !voice.handsFree;
  return html`
    <div class="composer" data-phase=${talk.phase} data-typing=${text === "" ? null : ""}>
      ${voice.handsFree && html`<${Orb} size="medium" phase=${talk.phase} voice=${voice} player=${player} />`}
      <form class="compose-row" onSubmit=${onSubmit}>
        ${!voice.handsFree && html`<${Orb} phase=${talk.phase} voice=${voice} player=${player} />`}
        <div class="field">
          <${Typing} text=${text} placeholder=${ready ? "Message" : ""} onText=${setText} onSend=${send} />
          <p role="status" data-shown=${text === "" && !ready ? "" : null}>${statusOf(talk)}</p>
        </div>
        ${choices.hears &&
        html`<button
          type="button"
          class="hands-free"
          aria-label="Hands-free"
          title="Hands-free: speak, and pause to send"
          aria-pressed=${voice.handsFree ? "true" : "false"}
          onClick=${onHandsFree}
        >
          <${Icon} name="hands" /><span aria-hidden="true">Hands-free</span>
        </button>`}
        <${HoldButton}
          icon=${html`<${Icon} name="microphone" />`}
          label="Hold to talk"
          pressed=${voice.held}
          level=${() => voice.level}
          disabled=${!choices.hears}
          describedBy="talk-how"
          onStart=${() => talk.hold()}
          onStop=${() => talk.release()}
        />
        <${SendOrStop} stops=${stops} enabled=${message !== "" && !voice.held} onStop=${() => talk.interrupt()} />
      </form>
      <p id="talk-how" class="how">${hint(choices, voice.handsFree)}</p>
    </div>
  `;
}

function statusOf({ phase, voice, current }) {
  if (phase === "listening") return voice.held ? "Listening… release to send" : "Listening… pause to send";
  if (phase === "idle" && voice.handsFree) return "Speak at any time";
  if (phase === "thinking" && current?.answer.paragraphs.length) return "Answering…";
  return STATUS[phase];
}

function hint(choices, handsFree) {
  if (!choices.hears) return "This strategy does not accept audio. Choose another one in the settings to speak.";
  if (handsFree) return "Pause to send. Speak again to interrupt the answer.";
  return html`<span class="with-keys">Hold the microphone button (or Space when it is focused) to talk. Enter sends what you type.</span>
    <span class="by-touch">Hold the microphone to talk.</span>`;
}

function Typing({ text, placeholder, onText, onSend }) {
  const field = useRef(null);
  useEffect(() => {
    if (HAS_KEYS.matches) field.current.focus({ preventScroll: true });
  }, []);
  useLayoutEffect(() => {
    field.current.style.height = "auto";
    field.current.style.height = `${Math.min(field.current.scrollHeight, MAX_TEXT_PX)}px`;
  }, [text]);
  const onKeyDown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    onSend();
  };
  return html`<textarea
    id="message"
    aria-label="Message"
    placeholder=${placeholder}
    rows="1"
    autocomplete="off"
    enterkeyhint="send"
    ref=${field}
    value=${text}
    onInput=${(event) => onText(event.currentTarget.value)}
    onKeyDown=${onKeyDown}
  />`;
}

/** One element for both, so that it keeps the focus. The second click of a double click does not stop the answer. */
function SendOrStop({ stops, enabled, onStop }) {
  const onClick = (event) => {
    if (!stops) return; // The form is submitted.
    event.preventDefault();
    if (event.detail < 2) onStop();
  };
  useEffect(() => {
    if (!stops) return undefined;
    const onKeyDown = ({ key, target }) => key === "Escape" && !target.closest?.("aside, dialog") && onStop();
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [stops]);
  const name = stops ? "Interrupt" : "Send";
  return html`<button
    type="submit"
    class=${stops ? "round stop" : "round send"}
    aria-label=${name}
    title=${stops ? "Interrupt (Esc)" : name}
    aria-disabled=${stops || enabled ? null : "true"}
    onClick=${onClick}
  >
    <${Icon} name=${stops ? "stop" : "send"} />
  </button>`;
}
