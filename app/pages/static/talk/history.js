// What the server has stored of a conversation (§4.17).

const SHOWN_RECORDS = 50;

/** Return the newest records, oldest first. Null: the conversation was deleted, or it belongs to another user. */
export async function newestRecords(client, conversationId) {
  try {
    const { conversation_records } = await client.history(conversationId, { size: SHOWN_RECORDS });
    return conversation_records.reverse();
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

/**
 * Return what is stored of a turn that was interrupted, or null. `recordId` is null if its last event is missing: then it
 * is the record that follows `before`, the one of the turn before, or 0.
 */
export async function recordOf(client, conversationId, { recordId, before }) {
  if (recordId !== null) {
    const { conversation_records } = await client.history(conversationId, { recordId });
    return conversation_records[0] ?? null;
  }
  const record = (await newestRecords(client, conversationId))?.at(-1);
  return record?.record_id > before ? record : null;
}
