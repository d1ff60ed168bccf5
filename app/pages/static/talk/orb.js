// The orb: it moves with the user's voice while the microphone is open, and with the answer while it is spoken.

import { html } from "../vendor/preact.js";
import { useLevel } from "./level.js";

const LOUD = 0.4; // a level that moves the orb as far as it goes

/** `phase`: that of the conversation. `size`: "small", "medium" or "large". */
export function Orb({ phase, voice, player, size = "small" }) {
  const source = { listening: voice, speaking: player }[phase];
  const orb = useLevel(source !== undefined, () => Math.min(1, (source?.level ?? 0) / LOUD));
  return html`<span class=${`orb ${size}`} data-phase=${phase} ref=${orb} aria-hidden="true"><i /><i /></span>`;
}
