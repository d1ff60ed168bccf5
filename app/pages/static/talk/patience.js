// How long to wait before asking again: longer each time, and never all clients at the same moment.

const FIRST_MS = 400;
const LONGEST_MS = 8_000;

/** Wait after the try of that number, from 0 on: with jitter, between half of it and all of it. */
export function backoffMs(tries) {
  const ms = Math.min(LONGEST_MS, FIRST_MS * 2 ** tries);
  return ms * (0.5 + Math.random() / 2);
}

/** Done after so long, with `value`. */
export const pause = (ms, value) => new Promise((resolve) => setTimeout(resolve, ms, value));
