// Calls about a conversation besides its turns: reading the history and cancelling an answer (§4.17).

import { ErrorResponse, Unreachable } from "./account.js";
import { backoffMs, delay } from "./backoff.js";

const HISTORY = "/bp/ai/conversation/query";
const SHOWN_RECORDS = 50;
const MAX_TRIES = 4; // of a cancellation to which the server responds with Retry-After
const READABLE_MS = 150_000; // longer than a stream can be cancelled after its end
const RESPONSE_MS = 20_000; // then a connection without a response is abandoned

/** Return the newest records, oldest first. */
export async function newestRecords(account, conversationId) {
  const query = { conversation_id: conversationId, size: SHOWN_RECORDS };
  const { data } = await account.json(HISTORY, { query });
  return data.conversation_records.reverse();
}

export async function recordOf(account, conversationId, recordId) {
  const query = { conversation_id: conversationId, record_id: recordId };
  const { data } = await account.json(HISTORY, { query });
  return data.conversation_records[0];
}

/** Return the newest record if it is newer than record `before`, else null. */
export async function recordAfter(account, conversationId, before) {
  try {
    const record = (await newestRecords(account, conversationId)).at(-1);
    return record?.record_id > before ? record : null;
  } catch (error) {
    if (error instanceof ErrorResponse && error.status === 404) return null; // The conversation was never stored.
    throw error;
  }
}

/**
 * Cancel an answer. The server keeps the words spoken within `heard_ms`, or with null all words it has produced.
 *
 * Without a response, the call is repeated for as long as the stream may exist. `onLost` is called before each repeat.
 */
export async function cancelStream(account, streamId, heard_ms, onLost) {
  const began = performance.now();
  for (let tries = 1; ; tries += 1) {
    try {
      const signal = AbortSignal.timeout(RESPONSE_MS);
      await account.call(`/bp/ai/stream/${streamId}`, { method: "DELETE", query: { heard_ms }, signal });
      return;
    } catch (error) {
      if (error instanceof ErrorResponse) {
        if (error.status === 404) return; // The stream ended too long ago to be cancelled.
        if (!error.retryAfterS || error.extra.retryable === false || tries >= MAX_TRIES) throw error;
      } else if (!(error instanceof Unreachable) || performance.now() - began > READABLE_MS) throw error;
      else onLost();
      await delay(Math.max(backoffMs(tries - 1), (error.retryAfterS ?? 0) * 1000));
    }
  }
}
