// Reads one event stream to its end: POST starts it, and GET with Last-Event-ID resumes it after a disconnect.

import { createParser } from "../vendor/eventsource-parser.js";
import { ErrorResponse, Unreachable } from "./account.js";
import { Digest } from "./digest.js";
import { backoffMs, delay } from "./backoff.js";

const SILENCE_TIMEOUT_MS = 45_000; // The server sends a ping every 15 s.
const GIVE_UP_MS = 150_000; // longer than a stream can be read after its end
const GIVE_UP_REQUEST_MS = 20_000; // while the stream has not begun
const LAST_EVENTS = new Set(["end", "error"]);

/** The connection was lost and could not be restored in time. */
export class ConnectionLost extends Error {}

/** The reader left the stream. */
export class ReaderLeft extends Error {}

export class EventStream {
  id = null;
  conversationId = null;
  lastId = 0;
  #account;
  #onEvent;
  #onConnection;
  #digest = new Digest();
  #connection = null;
  #left = false;

  /**
   * `onEvent` is called with `{id, name, content, bytes?}` for each event, once and in order. `end` also has `digest`:
   * "matches", "differs", or null if this browser cannot compute it. `onConnection` is called with "open" and the id of
   * the last event that was read, and with "lost".
   */
  constructor(account, { onEvent, onConnection = () => {} }) {
    this.#account = account;
    this.#onEvent = onEvent;
    this.#onConnection = onConnection;
  }

  /** Send a request and read its stream to the end. `headers` need an Idempotency-Key, so that a retry is safe. */
  async request(path, { body, headers }) {
    const streamed = body instanceof ReadableStream;
    const options = { method: "POST", body, headers, ...(streamed && { duplex: "half" }) };
    return this.#run((signal) => this.#account.call(path, { ...options, signal }), { repeatable: !streamed });
  }

  /** Read an existing stream from its first event. */
  async resume(id) {
    this.id = id;
    return this.#run(null, { repeatable: true });
  }

  /** Drop the connection, as an unreliable network would. */
  dropConnection() {
    this.#connection?.abort();
  }

  /** Stop reading. The promise of `request` or `resume` is rejected with `ReaderLeft`. */
  leave() {
    this.#left = true;
    this.#connection?.abort();
  }

  async #run(request, { repeatable }) {
    let [tries, failingSince] = [0, null];
    for (;;) {
      const lastIdBefore = this.lastId;
      let fault = new Unreachable("the connection was lost");
      try {
        const last = await this.#read(this.id === null ? request : (signal) => this.#reopen(signal));
        if (last) return last;
      } catch (error) {
        if (this.#left) throw new ReaderLeft("the reader left", { cause: error });
        if (!isTemporary(error, { begun: this.id !== null, repeatable })) throw error;
        fault = error;
      }
      if (this.lastId > lastIdBefore) [tries, failingSince] = [0, null];
      failingSince ??= performance.now();
      const waited = performance.now() - failingSince;
      if (this.id === null && waited > GIVE_UP_REQUEST_MS) throw fault;
      if (waited > GIVE_UP_MS) throw new ConnectionLost("the stream cannot be resumed", { cause: fault });
      this.#onConnection("lost");
      await delay(Math.max(backoffMs(tries), (fault.retryAfterS ?? 0) * 1000));
      tries += 1;
      if (this.#left) throw new ReaderLeft("the reader left");
    }
  }

  #reopen(signal) {
    const headers = this.lastId > 0 ? { "Last-Event-ID": String(this.lastId) } : {};
    return this.#account.call(`/bp/ai/stream/${this.id}`, { headers, signal });
  }

  /** Read one connection to its end. Return the last event of the stream, or null if it did not arrive. */
  async #read(open) {
    this.#connection = new AbortController();
    const response = await open(this.#connection.signal);
    this.id = response.headers.get("X-Service-Stream-Id") ?? this.id;
    this.conversationId = response.headers.get("X-Service-Conversation-Id") ?? this.conversationId;
    if (response.status === 204) return null;
    this.#onConnection("open", this.lastId);
    const messages = [];
    const parser = createParser({ onEvent: (message) => messages.push(message) });
    const text = new TextDecoder();
    const reader = response.body.getReader();
    let last = null; // The server closes the connection after it.
    for (;;) {
      const silence = setTimeout(() => this.dropConnection(), SILENCE_TIMEOUT_MS);
      const { done, value } = await reader
        .read()
        .catch((cause) => resultOfBrokenRead(cause, last))
        .finally(() => clearTimeout(silence));
      if (done) return last;
      parser.feed(text.decode(value, { stream: true }));
      for (const message of messages.splice(0)) last = await this.#emit(message);
    }
  }

  async #emit({ id, event: name, data }) {
    const number = id === undefined ? null : Number(id);
    const { content } = JSON.parse(data);
    if (name === "ping" || (number !== null && number <= this.lastId)) return null; // It was read before.
    if (number !== null) this.lastId = number;
    const event = { id: number, name, content, ...this.#digest.add(name, content) };
    if (name === "end") event.digest = await this.#digest.compare(content.digest);
    this.#onEvent(event);
    return LAST_EVENTS.has(name) ? event : null;
  }
}

function resultOfBrokenRead(cause, last) {
  if (last) return { done: true };
  throw new Unreachable("the connection was lost", { cause });
}

/** Return whether a retry may succeed: after a lost connection or, once the stream has begun, a server error. */
function isTemporary(error, { begun, repeatable }) {
  if (error instanceof ErrorResponse) return begun && (error.status === 429 || error.status >= 500);
  return (begun || repeatable) && (error instanceof Unreachable || error.name === "AbortError");
}
