// Cancels a stream: the server keeps what was said, or heard, until then.

import { ParleyError } from "../errors.js";
import { Attempts, delay } from "../http/backoff.js";
import type { Caller } from "../http/transport.js";
import { segment } from "../http/urls.js";

/** Cancel a stream. When this returns, the next turn of its conversation may begin. */
export async function cancelStream(caller: Caller, streamId: string, heardMs: number | null): Promise<void> {
  const attempts = new Attempts(caller.backoff);
  for (;;) {
    try {
      await caller.call({ method: "DELETE", path: `/bp/ai/stream/${segment(streamId)}`, query: { heard_ms: heardMs } });
      return;
    } catch (error) {
      if (!(error instanceof ParleyError)) throw error;
      if (error.status === 404) return; // It has ended too long ago.
      const ms = attempts.delayMs({ withinMs: caller.backoff.resumeMs, retryAfter: error.retryAfter });
      if (!error.retryable || ms === null) throw error;
      await delay(ms);
    }
  }
}
