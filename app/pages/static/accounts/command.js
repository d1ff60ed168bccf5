// A command for the shell, which can be copied.

import { html, useRef, useState } from "../vendor/preact.js";

/** `text`: the command. `label`: its name for screen readers. `note`: a hint below it. */
export function Command({ text, label, note, children }) {
  const shown = useRef(null);
  const [notice, setNotice] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(shown.current.textContent);
      setNotice("Copied");
    } catch {
      getSelection().selectAllChildren(shown.current); // Only secure contexts may write to the clipboard.
      setNotice("Selected. Copy it with your keyboard.");
    }
  };
  return html`
    <pre class="curl" tabindex="0" role="region" aria-label=${label}><code ref=${shown}>${text}</code></pre>
    ${note && html`<p>${note}</p>`}
    <p class="details-facts">
      <button type="button" class="quiet" onClick=${copy}>Copy as curl</button>
      ${children}
      <span aria-live="polite">${notice}</span>
    </p>
  `;
}

/** Return `text` as one word of a shell. */
export const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
