// What is asked of a conversation beside its turns: its history, and the end of an answer (§4.17).

import { Refused, Unreachable } from "./account.js";
import { backoffMs, pause } from "./patience.js";

const HISTORY = "/bp/ai/conversation/query";
const SHOWN_RECORDS = 50;
const TRIES = 4; // of a cancellation, where the server asks for time
const READABLE_MS = 150_000; // longer than there is a stream to cancel after its end
const ANSWERED_MS = 20_000; // a line that is dead without a word is left

/** The newest records, oldest first. */
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

/** The newest record, where it came behind record `before`; else null. */
export async function recordBehind(account, conversationId, before) {
  try {
    const record = (await newestRecords(account, conversationId)).at(-1);
    return record?.record_id > before ? record : null;
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return null; // nothing was ever kept of it
    throw error;
  }
}

/**
 * End an answer. Of it the server keeps what was heard in `heard_ms`; null: what was said.
 *
 * It is asked again until there is an answer, as long as there may be something to end. `onLost` is told when there
 * was none.
 */
export async function cancelStream(account, streamId, heard_ms, onLost) {
  const began = performance.now();
  for (let tries = 1; ; tries += 1) {
    try {
      const signal = AbortSignal.timeout(ANSWERED_MS);
      await account.call(`/bp/ai/stream/${streamId}`, { method: "DELETE", query: { heard_ms }, signal });
      return;
    } catch (error) {
      if (error instanceof Refused) {
        if (error.status === 404) return; // over for so long that nothing is cut any more
        if (!error.retryAfterS || tries >= TRIES) throw error;
      } else if (!(error instanceof Unreachable) || performance.now() - began > READABLE_MS) throw error;
      else onLost();
      await pause(Math.max(backoffMs(tries - 1), (error.retryAfterS ?? 0) * 1000));
    }
  }
}
