// A button that is active while it is held with the pointer or a key.

import { html, useRef } from "../vendor/preact.js";
import { useLevel } from "./level.js";

const KEYS = new Set([" ", "Enter"]);
const LOUD = 0.4; // a level that fills the button

/**
 * `pressed`: whether it is active. `onStart` and `onStop` are called when the user presses and releases it.
 * `icon`: shown instead of the label, in a round button. `level`: returns the user's volume from 0 to 1, shown inside it.
 */
export function HoldButton({ label, icon, level = () => 0, pressed, disabled = false, describedBy, onStart, onStop }) {
  const held = useRef(false);
  const button = useLevel(pressed, () => Math.min(1, level() / LOUD));

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
    event.currentTarget.setPointerCapture(event.pointerId); // A release outside the button counts as well.
    begin();
  };
  const onKeyDown = (event) => {
    if (!KEYS.has(event.key)) return;
    event.preventDefault(); // Do not also cause a click.
    if (!event.repeat) begin();
  };
  const onKeyUp = (event) => {
    if (!KEYS.has(event.key)) return;
    event.preventDefault();
    finish();
  };
  const onClick = (event) => {
    const byPointer = event.detail > 0;
    if (byPointer || disabled) return;
    (pressed ? onStop : onStart)(); // Screen readers and switches cannot hold: one click starts, the next one stops.
  };

  return html`<button
    type="button"
    class=${icon ? "hold round" : "hold"}
    ref=${button}
    aria-label=${label}
    title=${icon ? label : null}
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
    ${icon ?? label}
  </button>`;
}
