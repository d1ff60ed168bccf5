// A button that works while it is held, by pointer or key.

import { html, useRef } from "../vendor/preact.js";

const KEYS = new Set([" ", "Enter"]);

/** `pressed`: whether it works at present. `onStart` and `onStop` are told what the user wants. */
export function HoldButton({ label, pressed, disabled = false, describedBy, onStart, onStop }) {
  const held = useRef(false);

  const begin = () => {
    if (disabled || held.current) return;
    held.current = true;
    onStart();
  };
  const finish = () => {
    if (!held.current) return;
    held.current = false;
    onStop();
  };
  const onPointerDown = (event) => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId); // it is let go wherever that happens
    begin();
  };
  const onKeyDown = (event) => {
    if (!KEYS.has(event.key)) return;
    event.preventDefault(); // no click besides
    if (!event.repeat) begin();
  };
  const onKeyUp = (event) => {
    if (!KEYS.has(event.key)) return;
    event.preventDefault();
    finish();
  };
  const onClick = (event) => {
    const byHand = event.detail > 0;
    if (byHand || disabled) return;
    (pressed ? onStop : onStart)(); // screen readers and switches cannot hold: one click begins, the next one ends
  };

  return html`<button
    type="button"
    class="hold"
    aria-pressed=${pressed ? "true" : "false"}
    aria-disabled=${disabled ? "true" : null}
    aria-describedby=${describedBy}
    onPointerDown=${onPointerDown}
    onPointerUp=${finish}
    onPointerCancel=${finish}
    onKeyDown=${onKeyDown}
    onKeyUp=${onKeyUp}
    onBlur=${finish}
    onClick=${onClick}
    onContextMenu=${(event) => event.preventDefault()}
  >
    ${label}
  </button>`;
}
