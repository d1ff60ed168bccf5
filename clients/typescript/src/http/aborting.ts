// Signals in React Native have neither `reason` nor `throwIfAborted`.

/** Return why a signal was aborted. */
export function reasonOf(signal: AbortSignal): unknown {
  return signal.reason ?? Object.assign(new Error("the request was aborted"), { name: "AbortError" });
}
