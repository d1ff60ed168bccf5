// The signal that ends the reading of a stream.

/** Return the signal of `leaving`, which is also aborted with `signal`. */
export function leavingWith(leaving: AbortController, signal: AbortSignal | undefined): AbortSignal {
  const abort = () => leaving.abort(signal?.reason);
  if (signal?.aborted) abort();
  else signal?.addEventListener("abort", abort, { once: true, signal: leaving.signal });
  return leaving.signal;
}
