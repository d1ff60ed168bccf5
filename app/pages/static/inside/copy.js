// Copying a text to the clipboard.

import { html, useState } from "../vendor/preact.js";

const SHOWN_MS = 2_000;

/** A button that copies what `textOf()` returns. Without a clipboard, `onSelect` selects the text instead. */
export function CopyButton({ label, textOf, onSelect }) {
  const [notice, setNotice] = useState("");
  const say = (text) => {
    setNotice(text);
    setTimeout(() => setNotice(""), SHOWN_MS);
  };
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(textOf());
      say("Copied");
    } catch {
      onSelect?.(); // Only secure contexts may write to the clipboard.
      say(onSelect ? "Selected. Copy it with your keyboard." : "This browser cannot copy here.");
    }
  };
  return html`<span class="copy">
    <button type="button" class="quiet small" onClick=${copy}>${label}</button>
    <span aria-live="polite">${notice}</span>
  </span>`;
}
