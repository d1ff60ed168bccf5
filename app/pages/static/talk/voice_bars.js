// Bars that move with the user's voice while the microphone is open, and with the answer while it is spoken.

import { html, useEffect, useRef } from "../vendor/preact.js";
import { opennessAt } from "./mouth.js";

const BARS = 5;
const MIDDLE = (BARS - 1) / 2;
const REST = 0.12; // height of a bar that does not move
const EASE_MS = 70; // time constant: after this time, 63% of a movement is done
const DELAY_MS = 60; // The outer bars follow the middle one later.
const LOUD = 0.35; // a level that moves the bars as far as they go
const WITHOUT_VISEMES = 0.5; // openness that is shown if the voice reports no mouth shapes

/** `state` is "idle", "listening", "thinking" or "speaking". `level`: the user's volume from 0 to 1. */
export function VoiceBars({ state, level, player, visemes, large = false }) {
  const bars = useRef(null);
  const now = useRef({});
  now.current = { state, level, visemes };
  const moves = state === "listening" || state === "speaking";
  useEffect(() => (moves ? animate(bars.current, player, now) : undefined), [moves, player]);
  return html`<span class="voice-bars ${large ? "large" : ""}" data-state=${state} ref=${bars} aria-hidden="true">
    ${Array.from({ length: BARS }, (_, bar) => html`<i key=${bar} />`)}
  </span>`;
}

/** Animate the bars. Return a function that stops the animation. */
function animate(element, player, now) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return undefined;
  const heights = Array(BARS).fill(REST);
  const history = []; // [time, strength], the newest first
  let last = performance.now();
  let frame = 0;
  const step = (time) => {
    history.unshift([time, strength(now.current, player)]);
    history.length = Math.min(history.length, 60);
    const share = 1 - Math.exp(Math.min(0, last - time) / EASE_MS); // A frame's time may lie before the first one.
    last = time;
    for (const [bar, height] of heights.entries()) {
      const distance = Math.abs(bar - MIDDLE);
      const [, delayed] = history.find(([at]) => at <= time - distance * DELAY_MS) ?? [0, 0];
      const wanted = REST + (1 - REST) * delayed * (1 - distance / (2 * BARS));
      heights[bar] = height + (wanted - height) * share;
      element.children[bar].style.transform = `scaleY(${heights[bar].toFixed(3)})`;
    }
    frame = requestAnimationFrame(step);
  };
  frame = requestAnimationFrame(step);
  return () => {
    cancelAnimationFrame(frame);
    for (const bar of element.children) bar.style.transform = "";
  };
}

function strength({ state, level, visemes }, player) {
  if (state === "listening") return Math.min(1, level / LOUD);
  if (player.state !== "playing") return 0;
  return visemes.length ? opennessAt(visemes, player, player.playedMs) : WITHOUT_VISEMES;
}
