// Cancels a stream: the server keeps what was said, or heard, until then.

import { ConnectionLost, ParleyError } from "../errors.js";
import { backoffMs, delay } from "../http/backoff.js";
import type { Caller } from "../http/transport.js";

const MAX_REFUSED = 4;
/** Longer than a stream can be cancelled after its end. */
const GIVE_UP_MS = 150_000;

/** Cancel a stream. When this returns, the next turn of its conversation may begin. */
export async function cancelStream(caller: Caller, streamId: string, heardMs: number | null): Promise<void> {
  const began = performance.now();
  for (let [tries, refused] = [0, 0]; ; tries += 1) {
    try {
      await caller.call({ method: "DELETE", path: `/bp/ai/stream/${streamId}`, query: { heard_ms: heardMs } });
      return;
    } catch (error) {
      if (!(error instanceof ParleyError)) throw error;
      if (error.status === 404) return; // It has ended too long ago.
      if (!(error instanceof ConnectionLost)) refused += 1;
      if (!error.retryable || refused >= MAX_REFUSED || performance.now() - began > GIVE_UP_MS) throw error;
      await delay(backoffMs(tries, error.retryAfter));
    }
  }
}
