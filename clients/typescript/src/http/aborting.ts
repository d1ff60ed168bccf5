// Signals in React Native have neither `reason` nor `throwIfAborted`.

import type { AbortSignalLike } from "./web.js";

/** Return why a signal was aborted. */
export function reasonOf(signal: AbortSignalLike): unknown {
  return signal.reason ?? Object.assign(new Error("the request was aborted"), { name: "AbortError" });
}

/** Return the signal of `leaving`, which is also aborted with `signal`. */
export function leavingWith(leaving: AbortController, signal: AbortSignalLike | null | undefined): AbortSignal {
  const abort = () => leaving.abort(signal?.reason);
  if (signal?.aborted) abort();
  else signal?.addEventListener("abort", abort, { once: true, signal: leaving.signal });
  return leaving.signal;
}
