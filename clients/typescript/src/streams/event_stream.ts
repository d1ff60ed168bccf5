// Reads one stream to its end: begins it, and resumes it after each disconnect.

import { fromBase64 } from "../crypto/encodings.js";
import { ConnectionLost, DigestMismatch, NotUnderstood, ParleyError } from "../errors.js";
import { backoffMs, delay } from "../http/backoff.js";
import type { ApiRequest, Caller } from "../http/transport.js";
import { Digest } from "./digest.js";
import type { StreamEvent } from "./events.js";
import { piecesOf, SILENCE_MS } from "./pieces.js";
import { SseParser, type Message } from "./sse.js";

const BEGIN_MS = 20_000;
/** Longer than a stream can be read after its end. */
const RESUME_MS = 150_000;
/** A connection that has lasted longer was not faulty. */
const STEADY_MS = 10_000;
/** If the same place of a stream is faulty this many times, resuming it does not help. */
const MAX_FAULTY = 3;
/** The only event before the input is complete. */
const START_ID = 1;
const AUDIO = new Set(["audio_chunk", "assistant_output_audio_chunk"]);

/** The error of a process that has lost the stream. Another process may continue it. */
class Unnumbered extends ParleyError {
  readonly original: ParleyError;

  constructor(original: ParleyError) {
    super(original.errorType, original.message);
    this.original = original;
  }
}

/** Events are missing. The server still has them, so a resume may bring them. */
class Gap extends NotUnderstood {}

export class EventStream {
  streamId: string | null = null;
  conversationId: string | null = null;
  /** Resolves when the ids are known, or when they will never be. */
  readonly opened: Promise<void>;
  #setOpened: () => void = () => {};
  readonly #caller: Caller;
  readonly #request: ApiRequest;
  readonly #signal: AbortSignal;
  readonly #digest = new Digest();
  #lastId = 0;

  /** `request` begins the stream; it needs an `Idempotency-Key`, so that it can be repeated. */
  constructor(caller: Caller, request: ApiRequest, signal: AbortSignal) {
    this.#caller = caller;
    this.#request = request;
    this.#signal = signal;
    this.opened = new Promise((resolve) => (this.#setOpened = resolve));
  }

  /**
   * Yield each event once, in the order of the ids, up to `end`.
   *
   * Throws the error of an `error` event, and other errors if the stream cannot be resumed.
   */
  async *events(): AsyncGenerator<StreamEvent> {
    try {
      let [tries, faulty, failingSince] = [0, 0, Infinity];
      for (;;) {
        const [before, began] = [this.#lastId, performance.now()];
        let fault: ParleyError;
        try {
          for await (const event of this.#connection()) {
            yield event;
            if (event.name === "end") return;
          }
          fault = new ConnectionLost("the response has ended before the stream");
        } catch (error) {
          if (this.#signal.aborted) throw this.#signal.reason;
          if (!(error instanceof ParleyError)) throw error;
          fault = error;
        }
        const now = performance.now();
        if (this.#lastId > before || now - began > STEADY_MS) [tries, faulty, failingSince] = [0, 0, now];
        failingSince = Math.min(failingSince, now);
        if (fault instanceof NotUnderstood || fault instanceof Unnumbered) faulty += 1;
        const startsAgain = this.#isLostWithItsInput(fault);
        if (startsAgain) this.streamId = null;
        const wait = backoffMs(tries, fault.retryAfter);
        const limit = this.streamId === null ? BEGIN_MS : RESUME_MS;
        const helps = (startsAgain || this.#resumes(fault)) && faulty < MAX_FAULTY;
        if (!helps || now - failingSince + wait > limit) throw fault instanceof Unnumbered ? fault.original : fault;
        await delay(wait, this.#signal);
        tries += 1;
      }
    } finally {
      this.#setOpened();
    }
  }

  /** Return whether the connection broke before the server had the whole input, which ends a stream. */
  #isLostWithItsInput(fault: ParleyError): boolean {
    if (this.#request.body?.isUnsent === undefined || this.#lastId > START_ID) return false;
    const isGone = fault.status === 404 && this.streamId !== null;
    return isGone || (fault instanceof ConnectionLost && this.#request.body.isUnsent());
  }

  #resumes(fault: ParleyError): boolean {
    if (fault instanceof ConnectionLost || fault instanceof Unnumbered || fault instanceof Gap) return true;
    const begun = this.streamId !== null;
    return fault.status === 429 || fault.status === 503 || (begun && (fault.status ?? 0) >= 500);
  }

  /** Yield the new events of one connection. */
  async *#connection(): AsyncGenerator<StreamEvent> {
    const connection = new AbortController();
    const abort = () => connection.abort(this.#signal.reason);
    this.#signal.throwIfAborted();
    this.#signal.addEventListener("abort", abort);
    const request = this.#nextRequest();
    const giveUp = () => connection.abort(new ConnectionLost("there is no response"));
    const silence = request.body?.isUnsent ? undefined : setTimeout(giveUp, SILENCE_MS);
    try {
      const response = await this.#caller.call({ ...request, signal: connection.signal });
      clearTimeout(silence);
      this.streamId = response.headers.get("X-Service-Stream-Id") ?? this.streamId;
      this.conversationId = response.headers.get("X-Service-Conversation-Id") ?? this.conversationId;
      if (this.streamId === null) throw new NotUnderstood("the response is not a stream", { status: response.status });
      this.#setOpened();
      const parser = new SseParser();
      for await (const bytes of piecesOf(response)) {
        for (const message of parser.feed(bytes)) {
          const event = this.#read(message);
          if (event !== null) yield event;
        }
      }
    } finally {
      clearTimeout(silence);
      this.#signal.removeEventListener("abort", abort);
      connection.abort(); // It closes the connection if the stream has not been read to its end.
    }
  }

  #nextRequest(): ApiRequest {
    if (this.streamId === null) return this.#request;
    const path = `/bp/ai/stream/${this.streamId}`;
    return { method: "GET", path, headers: { "Last-Event-ID": String(this.#lastId) } };
  }

  /** Return the event, or null if it has been read before or is a `ping`. Throws the error of an `error`. */
  #read(message: Message): StreamEvent | null {
    if (message.name === "ping") return null;
    const id = message.id === null ? null : Number(message.id);
    const event = parsedEvent(message, id ?? 0);
    if (id === null) {
      if (event.name === "error") throw new Unnumbered(errorIn(event));
      throw new NotUnderstood(`an event ${event.name} of the stream has no id`);
    }
    if (id <= this.#lastId) return null;
    if (id !== this.#lastId + 1) throw new Gap(`event ${id} of the stream follows event ${this.#lastId}`);
    this.#lastId = id;
    if (event.name === "error") throw errorIn(event);
    this.#digestOf(event);
    return event;
  }

  #digestOf(event: StreamEvent): void {
    const content = event.content as { text: string; digest: { chars: number; sha256: string } };
    if (event.name === "assistant_output_chunk") this.#digest.addText(content.text);
    else if ("bytes" in event) this.#digest.addAudio(event.bytes as Uint8Array);
    else if (event.name === "end" && !this.#digest.matches(content.digest)) throw new DigestMismatch(this.streamId);
  }
}

function parsedEvent({ name, data }: Message, id: number): StreamEvent {
  try {
    const { content, timestamp } = JSON.parse(data) as { content: unknown; timestamp: number };
    const event = { id, name, content, timestamp };
    return AUDIO.has(name) ? { ...event, bytes: fromBase64((content as { audio: string }).audio) } as StreamEvent : event;
  } catch (cause) {
    throw new NotUnderstood(`an event ${name} of the stream is malformed`, { cause });
  }
}

function errorIn(event: StreamEvent): ParleyError {
  const { error } = event.content as { error: { error_type: string; message: string; extra?: Record<string, unknown> } };
  return new ParleyError(error.error_type, error.message, { extra: error.extra });
}
