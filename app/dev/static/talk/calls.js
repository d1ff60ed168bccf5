// What is asked of a conversation beside its turns: its history, and the end of an answer (§4.17).

import { Refused } from "./account.js";
import { pause } from "./patience.js";

const HISTORY = "/bp/ai/conversation/query";
const SHOWN_RECORDS = 50;
const TRIES = 4; // of a cancellation, where the server asks for time

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

/** End an answer. Of it the server keeps what was heard in `heard_ms`; null: what was said. */
export async function cancelStream(account, streamId, heard_ms) {
  for (let tries = 1; ; tries += 1) {
    try {
      await account.call(`/bp/ai/stream/${streamId}`, { method: "DELETE", query: { heard_ms } });
      return;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.status === 404) return; // over for so long that nothing is cut any more
      if (!error.retryAfterS || tries === TRIES) throw error;
      await pause(error.retryAfterS * 1000);
    }
  }
}
