// Server-Sent Events with the headers that tell the server that a page only watches.

import { createParser } from "../vendor/eventsource-parser.js";
import { sessionEnded } from "./api.js";

const AGAIN_MS = 1_000;
const MAX_AGAIN_MS = 16_000;

/**
 * Calls `onValue` with each event of `path`, which may be a function, and `onState(live)`. Asks again when a response
 * ends, unless `onEnd()` returns `true`, there is nothing at the path, or the session has ended. Waits longer after each
 * failure. Returns a function that stops.
 */
export function watch(path, onValue, onState, onEnd = () => false) {
  const stopped = new AbortController();
  let failures = 0;
  const pause = () => new Promise((resolve) => setTimeout(resolve, Math.min(AGAIN_MS * 2 ** failures, MAX_AGAIN_MS)));
  const follow = async () => {
    const response = await fetch(typeof path === "function" ? path() : path, { headers: { "X-Parley-Background": "1" }, signal: stopped.signal, cache: "no-store" });
    if (response.status === 401) sessionEnded();
    if (response.status === 401 || response.status === 404) return true;
    if (!response.ok) throw new Error(response.statusText);
    const parser = createParser({ onEvent: ({ data }) => onValue(JSON.parse(data)) });
    const decoder = new TextDecoder();
    failures = 0;
    onState(true);
    for await (const bytes of readerOf(response.body)) parser.feed(decoder.decode(bytes, { stream: true }));
    return onEnd();
  };
  const failed = () => {
    failures += 1;
    onState(false);
  };
  const run = async () => {
    while (!stopped.signal.aborted) {
      if (await follow().catch(failed)) return;
      if (!stopped.signal.aborted) await pause();
    }
  };
  run();
  return () => stopped.abort();
}

async function* readerOf(body) {
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
