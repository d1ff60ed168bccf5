// One stream of events, to its end: asked for by POST, read on by GET with Last-Event-ID whenever the line breaks.

import { createParser } from "../vendor/eventsource-parser.js";
import { Refused, Unreachable } from "./account.js";
import { Digest } from "./digest.js";
import { backoffMs, pause } from "./patience.js";

const SILENCE_MS = 45_000; // a server that is there says so every 15 s
const GIVE_UP_MS = 150_000; // longer than a stream can be read after its end
const GIVE_UP_ASKING_MS = 20_000; // while there is no stream yet
const LAST = new Set(["end", "error"]);

/** The line broke, and could not be mended in time. */
export class Lost extends Error {}

/** The reader went away by itself. */
export class Left extends Error {}

export class EventStream {
  id = null;
  conversationId = null;
  lastId = 0;
  #account;
  #onEvent;
  #onLine;
  #digest = new Digest();
  #connection = null;
  #left = false;

  /**
   * `onEvent` gets `{id, name, content, bytes?}`, each once and in order; the last one has `digest` besides
   * ("right", "wrong", or null where this browser cannot compute it). `onLine` is told "open", with the id from
   * behind which it is read, and "lost".
   */
  constructor(account, { onEvent, onLine = () => {} }) {
    this.#account = account;
    this.#onEvent = onEvent;
    this.#onLine = onLine;
  }

  /** Ask, and read to the end. `headers` hold an Idempotency-Key, so that asking again is no second question. */
  async ask(path, { body, headers }) {
    const streamed = body instanceof ReadableStream;
    const options = { method: "POST", body, headers, ...(streamed && { duplex: "half" }) };
    return this.#run((signal) => this.#account.call(path, { ...options, signal }), { again: !streamed });
  }

  /** Read a stream that was begun before, from its first event. */
  async pickUp(id) {
    this.id = id;
    return this.#run(null, { again: true });
  }

  /** Drop the connection, as a bad network would. */
  pullPlug() {
    this.#connection?.abort();
  }

  /** Read no more. The promise of `ask` or `pickUp` fails with `Left`. */
  leave() {
    this.#left = true;
    this.#connection?.abort();
  }

  async #run(ask, { again }) {
    let [tries, since] = [0, null];
    for (;;) {
      const before = this.lastId;
      let fault = new Unreachable("the line broke");
      try {
        const last = await this.#read(this.id === null ? ask : (signal) => this.#resume(signal));
        if (last) return last;
      } catch (error) {
        if (this.#left) throw new Left("the reader went away", { cause: error });
        if (!mayPass(error, { begun: this.id !== null, again })) throw error;
        fault = error;
      }
      if (this.lastId > before) [tries, since] = [0, null];
      since ??= performance.now();
      const waited = performance.now() - since;
      if (this.id === null && waited > GIVE_UP_ASKING_MS) throw fault;
      if (waited > GIVE_UP_MS) throw new Lost("the stream cannot be read on", { cause: fault });
      this.#onLine("lost");
      await pause(Math.max(backoffMs(tries), (fault.retryAfterS ?? 0) * 1000));
      tries += 1;
      if (this.#left) throw new Left("the reader went away");
    }
  }

  #resume(signal) {
    const headers = this.lastId > 0 ? { "Last-Event-ID": String(this.lastId) } : {};
    return this.#account.call(`/bp/ai/stream/${this.id}`, { headers, signal });
  }

  /** Read what one connection gives; the last event of the stream, where it comes. */
  async #read(open) {
    this.#connection = new AbortController();
    const response = await open(this.#connection.signal);
    this.id = response.headers.get("X-Service-Stream-Id") ?? this.id;
    this.conversationId = response.headers.get("X-Service-Conversation-Id") ?? this.conversationId;
    if (response.status === 204) return null;
    this.#onLine("open", this.lastId);
    const seen = [];
    const parser = createParser({ onEvent: (message) => seen.push(message) });
    const text = new TextDecoder();
    const reader = response.body.getReader();
    let last = null; // behind it the line is closed
    for (;;) {
      const silence = setTimeout(() => this.pullPlug(), SILENCE_MS);
      const { done, value } = await reader
        .read()
        .catch((cause) => broken(cause, last))
        .finally(() => clearTimeout(silence));
      if (done) return last;
      parser.feed(text.decode(value, { stream: true }));
      for (const message of seen.splice(0)) last = await this.#take(message);
    }
  }

  async #take({ id, event: name, data }) {
    const number = id === undefined ? null : Number(id);
    const { content } = JSON.parse(data);
    if (name === "ping" || (number !== null && number <= this.lastId)) return null; // it was read before
    if (number !== null) this.lastId = number;
    const event = { id: number, name, content, ...this.#digest.take(name, content) };
    if (name === "end") event.digest = await this.#digest.compare(content.digest);
    this.#onEvent(event);
    return LAST.has(name) ? event : null;
  }
}

function broken(cause, last) {
  if (last) return { done: true };
  throw new Unreachable("the line broke", { cause });
}

/** Whether a fault may be over when it is tried again: a broken line, or, once begun, a server in trouble. */
function mayPass(error, { begun, again }) {
  if (error instanceof Refused) return begun && (error.status === 429 || error.status >= 500);
  return (begun || again) && (error instanceof Unreachable || error.name === "AbortError");
}
