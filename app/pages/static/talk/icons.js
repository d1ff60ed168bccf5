// The icons of the page, drawn with the colour of the text around them.

import { html } from "../vendor/preact.js";

const PATHS = {
  close: ["M6 6l12 12", "M18 6L6 18"],
  copy: ["M9 9h10v11H9z", "M15 9V4H5v11h4"],
  down: ["M12 5v14", "M6 13l6 6 6-6"],
  inside: ["M4 5h16v14H4z", "M14 5v14"],
  hands: ["M4 12h1", "M8 9v6", "M12 5v14", "M16 9v6", "M19 12h1"],
  microphone: ["M12 3a3 3 0 0 1 3 3v5a3 3 0 0 1-6 0V6a3 3 0 0 1 3-3z", "M6 11a6 6 0 0 0 12 0", "M12 17v4"],
  new: ["M12 5v14", "M5 12h14"],
  replay: ["M5 12a7 7 0 1 0 2.3-5.2", "M5 4v4h4"],
  send: ["M12 19V5", "M6 11l6-6 6 6"],
  settings: ["M4 7h9", "M17 7h3", "M15 4.5v5", "M4 17h3", "M11 17h9", "M9 14.5v5"],
  stop: ["M8 8h8v8H8z"],
  timer: ["M12 21a8 8 0 1 0 0-16 8 8 0 0 0 0 16z", "M12 9v4l2.5 2", "M10 2h4"],
  up: ["M6 15l6-6 6 6"],
  later: ["M6 9l6 6 6-6"],
};

export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">${PATHS[name].map((d) => html`<path key=${d} d=${d} />`)}</svg>`;
}

/** A button that uses aria-disabled, so that it keeps the focus when a click disables it. */
export function IconButton({ icon, label, text = "", enabled = true, onAct, ...rest }) {
  return html`<button
    type="button"
    class=${`quiet ${text ? "with-text" : "icon-only"}`}
    aria-label=${label}
    title=${label}
    aria-disabled=${enabled ? null : "true"}
    onClick=${() => enabled && onAct()}
    ...${rest}
  >
    <${Icon} name=${icon} />${text && html`<span class="text" aria-hidden="true">${text}</span>`}
  </button>`;
}
