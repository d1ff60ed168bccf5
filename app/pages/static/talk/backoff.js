// Delays between retries: exponential backoff with jitter.

const FIRST_MS = 400;
const LONGEST_MS = 8_000;

/** Return the delay after attempt number `tries`, counted from 0: a random time between half of it and all of it. */
export function backoffMs(tries) {
  const ms = Math.min(LONGEST_MS, FIRST_MS * 2 ** tries);
  return ms * (0.5 + Math.random() / 2);
}

/** Resolve with `value` after `ms` milliseconds. */
export const delay = (ms, value) => new Promise((resolve) => setTimeout(resolve, ms, value));
