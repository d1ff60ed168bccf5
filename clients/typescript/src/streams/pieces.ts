// The body of a response, piece by piece as it arrives.

import { ConnectionLost } from "../errors.js";
import type { ResponseLike } from "../http/web.js";

/** The server sends a `ping` after 15 s without another event. */
export const SILENCE_MS = 45_000;

/**
 * Yield the bytes of a response. Throws `ConnectionLost` if it breaks off, or if nothing arrives for a long time.
 *
 * React Native's own `fetch` has no streams: all bytes are yielded at the end then. Give the client the `fetch` of the
 * package `expo/fetch` instead.
 */
export async function* piecesOf(response: ResponseLike): AsyncGenerator<Uint8Array> {
  if (!response.body?.getReader) {
    yield new Uint8Array(await response.arrayBuffer().catch(broken));
    return;
  }
  const reader = response.body.getReader();
  for (;;) {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const silence = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new ConnectionLost("the connection is silent")), SILENCE_MS);
    });
    try {
      const { done, value } = await Promise.race([reader.read().catch(broken), silence]);
      if (done) return;
      yield value!;
    } finally {
      clearTimeout(timer);
    }
  }
}

function broken(cause: unknown): never {
  throw new ConnectionLost("the response broke off", cause);
}
