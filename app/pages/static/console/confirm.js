// A dialog before a dangerous action. It says what will happen and asks for the name of the thing.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { TEXTS } from "./texts.js";

export function Confirm({ text, name, action, onYes, onNo }) {
  const dialog = useRef();
  const [typed, setTyped] = useState("");
  useEffect(() => dialog.current.showModal(), []);
  const submit = (event) => {
    event.preventDefault();
    if (typed === name) onYes();
  };
  return html`<dialog ref=${dialog} onClose=${onNo} aria-label=${action}>
    <form onSubmit=${submit}>
      <label>${text}<input value=${typed} onInput=${(event) => setTyped(event.currentTarget.value)} /></label>
      <div class="actions">
        <button class="danger" disabled=${typed !== name}>${action}</button>
        <button type="button" class="quiet" onClick=${onNo}>${TEXTS.cancel}</button>
      </div>
    </form>
  </dialog>`;
}
