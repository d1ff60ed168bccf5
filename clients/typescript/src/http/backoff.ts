// Delays between retries: exponential backoff with jitter, and at least what the server asks for.

const FIRST_MS = 400;
const LONGEST_MS = 8_000;

/** Return the delay after attempt number `tries`, counted from 0: a random time between half of it and all of it. */
export function backoffMs(tries: number, retryAfterS: number | null = null): number {
  const ms = Math.min(LONGEST_MS, FIRST_MS * 2 ** tries) * (0.5 + Math.random() / 2);
  return Math.max(ms, (retryAfterS ?? 0) * 1000);
}

/** Resolve after `ms` milliseconds. Rejects with the reason of `signal` as soon as it is aborted. */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
