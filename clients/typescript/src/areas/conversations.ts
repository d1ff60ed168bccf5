// A user's conversations and their records.

import type { ConversationList, History, Offers } from "../api.js";
import { get, sendOnce } from "../http/calls.js";
import type { Caller } from "../http/transport.js";
import { encoded } from "../http/urls.js";

export interface HistoryOptions {
  conversationId: string;
  /** The newest record to return. By default, the last one. */
  from?: number;
  /** The number of records, which come newest first: 1 to 100, by default 10. */
  size?: number;
  /** Only this record. */
  recordId?: number;
}

export class Conversations {
  constructor(private readonly caller: Caller) {}

  /** The records of a conversation. */
  history({ conversationId, from, size, recordId }: HistoryOptions): Promise<History> {
    const query = { conversation_id: conversationId, from, size, record_id: recordId };
    return get(this.caller, "/bp/ai/conversation/query", query);
  }

  /** The conversations, newest first. `before`: the `next` of the previous page. */
  list({ before, size }: { before?: string; size?: number } = {}): Promise<ConversationList> {
    return get(this.caller, "/bp/ai/conversations", { before, size });
  }

  /** Delete a conversation with its records and audio. */
  delete(conversationId: string): Promise<void> {
    return sendOnce(this.caller, "DELETE", `/bp/ai/conversation/${encoded(conversationId)}`);
  }

  /** The strategies that the user may choose. */
  offers(): Promise<Offers> {
    return get(this.caller, "/bp/ai/offers");
  }
}
