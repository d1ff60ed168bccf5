// A mouth that moves with the speech. Its shapes follow the viseme ids 0 to 21 of vendor A, timed by the player.

import { html, useEffect, useRef } from "../vendor/preact.js";

const EASE_MS = 45; // time constant: after this time, 63% of a movement is done
const LOOK_AHEAD_MS = 25; // The mouth begins to move this long before the sound.

// Opening, width, visibility of the upper teeth and of the tongue, each from 0 to 1.
const SHAPES = [
  [0.0, 0.5, 0.0, 0.0], // 0 silence
  [0.7, 0.55, 0.3, 0.3], // 1 æ ə ʌ
  [0.95, 0.55, 0.2, 0.3], // 2 ɑ
  [0.75, 0.3, 0.0, 0.2], // 3 ɔ
  [0.55, 0.6, 0.4, 0.3], // 4 ɛ ʊ
  [0.4, 0.4, 0.4, 0.3], // 5 ɝ
  [0.3, 0.9, 0.7, 0.3], // 6 j i ɪ
  [0.25, 0.08, 0.0, 0.0], // 7 w u
  [0.55, 0.18, 0.0, 0.1], // 8 o
  [0.8, 0.4, 0.2, 0.2], // 9 aʊ
  [0.6, 0.3, 0.1, 0.2], // 10 ɔɪ
  [0.75, 0.65, 0.4, 0.3], // 11 aɪ
  [0.5, 0.5, 0.2, 0.2], // 12 h
  [0.35, 0.3, 0.4, 0.4], // 13 ɹ
  [0.45, 0.6, 0.5, 1.0], // 14 l
  [0.15, 0.8, 1.0, 0.0], // 15 s z
  [0.3, 0.25, 1.0, 0.1], // 16 ʃ tʃ dʒ ʒ
  [0.3, 0.6, 0.7, 0.9], // 17 ð θ
  [0.12, 0.6, 1.0, 0.0], // 18 f v
  [0.25, 0.65, 0.8, 0.6], // 19 d t n
  [0.4, 0.55, 0.4, 0.2], // 20 k g ŋ
  [0.0, 0.45, 0.0, 0.0], // 21 p b m
];
const SILENCE = 0;
const STILL_SPEAKING = 4; // shown instead of motion if the user prefers reduced motion

/**
 * `visemes` are `[ms, id]`, counted from the answer's first audio, or `[ms, id, index]`, counted from the first audio
 * of paragraph `index`. The list may grow while the answer plays.
 */
export function Mouth({ player, visemes }) {
  const drawing = useRef(null);
  const shown = useRef(visemes);
  shown.current = visemes;
  useEffect(() => animate(drawing.current, player, shown), [player, player.playing]);
  return html`
    <svg class="mouth" ref=${drawing} viewBox="-60 -40 120 80" role="img" aria-label="Mouth">
      <clipPath id="mouth-opening"><path /></clipPath>
      <path class="mouth-lips" />
      <path class="mouth-dark" />
      <g clip-path="url(#mouth-opening)">
        <ellipse class="mouth-tongue" />
        <rect class="mouth-teeth" rx="3" />
      </g>
    </svg>
  `;
}

/** Animate the drawing until the answer has been played. Return a function that stops the animation. */
function animate(drawing, player, shown) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
    draw(drawing, SHAPES[player.playing ? STILL_SPEAKING : SILENCE]);
    return undefined;
  }
  let shape = [...SHAPES[SILENCE]];
  let last = performance.now();
  let frame = 0;
  const step = (now) => {
    const id = visemeAt(shown.current, player, player.heardMs + LOOK_AHEAD_MS);
    const share = 1 - Math.exp(Math.min(0, last - now) / EASE_MS); // A frame's time may lie before the start of the animation.
    shape = shape.map((part, at) => part + (SHAPES[id][at] - part) * share);
    last = now;
    draw(drawing, shape);
    drawing.dataset.viseme = id;
    if (player.playing || shape[0] > 0.01) frame = requestAnimationFrame(step);
  };
  frame = requestAnimationFrame(step);
  return () => cancelAnimationFrame(frame);
}

/** Return the id of the last shape that began by `ms`. Before the first and while nothing plays, it is silence. */
export function visemeAt(visemes, player, ms) {
  if (player.state !== "playing") return SILENCE;
  const began = ([offset_ms, , index]) => {
    const start_ms = index === undefined ? 0 : player.startOf(index);
    return start_ms !== null && start_ms + offset_ms <= ms;
  };
  let [low, high] = [0, visemes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (began(visemes[middle])) low = middle + 1;
    else high = middle;
  }
  const id = low > 0 ? visemes[low - 1][1] : SILENCE;
  return id in SHAPES ? id : SILENCE;
}

/** Return how far the mouth is open at `ms`, from 0 to 1. */
export const opennessAt = (visemes, player, ms) => SHAPES[visemeAt(visemes, player, ms)][0];

function draw(drawing, [open, wide, teeth, tongue]) {
  const [opening, lips, dark, below, upper] = drawing.querySelectorAll("path, rect, ellipse");
  const half = 18 + 26 * wide;
  const gap = 26 * open;
  lips.setAttribute("d", outline(half + 8, gap + 7));
  for (const path of [opening, dark]) path.setAttribute("d", outline(half, gap));
  setAttributes(upper, { x: -half, y: -gap - 3, width: 2 * half, height: 3 + Math.min(9 * teeth, gap) });
  setAttributes(below, { cx: 0, cy: gap * (1 - 0.6 * tongue), rx: half * 0.55, ry: gap * 0.6 * tongue });
}

function outline(half, gap) {
  const bow = gap * 1.25;
  const curve = (from, to) => `C ${-to / 2} ${-from}, ${to / 2} ${-from}, ${to} 0`;
  return `M ${-half} 0 ${curve(bow, half)} ${curve(-bow, -half)} Z`;
}

function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value.toFixed(2));
}
