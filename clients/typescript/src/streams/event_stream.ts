// Reads one stream to its end: begins it, and resumes it after each disconnect.

import type { Digest as SentDigest, StreamError } from "../api.js";
import { fromBase64 } from "../crypto/encodings.js";
import { ConnectionLost, DigestMismatch, NotUnderstood, ParleyError } from "../errors.js";
import { reasonOf } from "../http/aborting.js";
import { Attempts, delay } from "../http/backoff.js";
import type { ApiRequest, Caller } from "../http/transport.js";
import { segment } from "../http/urls.js";
import type { AbortSignalLike } from "../http/web.js";
import { Digest } from "./digest.js";
import type { StreamEvent } from "./events.js";
import { piecesOf, SILENCE_MS } from "./pieces.js";
import { SseParser, type Message } from "./sse.js";

/** The page of a proxy whose server is being replaced. */
const PROXY_FAULTS = new Set([502, 503, 504]);
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

/** "none": there is no connection yet, or none is needed any more. "lost": the stream is about to be resumed. */
export type ConnectionState = "none" | "open" | "lost";

/** `afterId` is the id of the last event that was read: 0 before the first, and after a resume that of the one before the cut. */
export type OnConnection = (state: ConnectionState, afterId: number) => void;

/** Events are missing. The server still has them, so a resume may bring them. */
class Gap extends NotUnderstood {}

export class EventStream {
  streamId: string | null = null;
  conversationId: string | null = null;
  connection: ConnectionState = "none";
  /** Resolves when the ids are known, or when they will never be. */
  readonly opened: Promise<void>;
  #setOpened: () => void = () => {};
  readonly #caller: Caller;
  readonly #request: ApiRequest | null;
  readonly #signal: AbortSignalLike;
  readonly #onConnection: OnConnection;
  readonly #digest = new Digest();
  #lastId = 0;
  #drop: () => void = () => {};

  /**
   * `origin` is the request that begins the stream, or the id of a stream that has begun. A request needs an
   * `Idempotency-Key`, so that it can be repeated.
   */
  constructor(
    caller: Caller,
    origin: ApiRequest | string,
    signal: AbortSignalLike,
    onConnection: OnConnection = () => {},
  ) {
    this.#caller = caller;
    this.#request = typeof origin === "string" ? null : origin;
    if (typeof origin === "string") this.streamId = origin;
    this.#signal = signal;
    this.#onConnection = onConnection;
    this.opened = new Promise((resolve) => (this.#setOpened = resolve));
  }

  /** Close the connection, as an unreliable network would. The stream is then resumed. */
  dropConnection(): void {
    this.#drop();
  }

  /**
   * Yield each event once, in the order of the ids, up to `end`.
   *
   * Throws the error of an `error` event, and other errors if the stream cannot be resumed.
   */
  async *events(): AsyncGenerator<StreamEvent> {
    try {
      const attempts = new Attempts(this.#caller.backoff);
      let faulty = 0;
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
          if (this.#signal.aborted) throw reasonOf(this.#signal);
          if (!(error instanceof ParleyError)) throw error;
          fault = error;
        }
        if (this.#lastId > before || performance.now() - began > STEADY_MS) {
          attempts.progress();
          faulty = 0;
        }
        if (fault instanceof NotUnderstood || fault instanceof Unnumbered) faulty += 1;
        const ms = this.#delayMs(fault, attempts);
        if (ms === null || faulty >= MAX_FAULTY) throw fault instanceof Unnumbered ? fault.original : fault;
        this.#setConnection("lost");
        await delay(ms, this.#signal);
      }
    } finally {
      this.#setOpened();
      if (this.connection !== "none") this.#setConnection("none");
    }
  }

  #setConnection(state: ConnectionState): void {
    this.connection = state;
    this.#onConnection(state, this.#lastId);
  }

  /** Return the delay before the next connection, or null if it cannot help. */
  #delayMs(fault: ParleyError, attempts: Attempts): number | null {
    const startsAgain = this.#isLostWithItsInput(fault);
    if (!startsAgain && !this.#resumes(fault)) return null;
    if (startsAgain) this.streamId = null;
    const { beginMs, resumeMs } = this.#caller.backoff;
    const withinMs = this.streamId === null ? beginMs : resumeMs;
    return attempts.delayMs({ withinMs, retryAfter: fault.retryAfter });
  }

  /** Return whether the connection broke before the server had the whole input, which ends a stream. */
  #isLostWithItsInput(fault: ParleyError): boolean {
    if (this.#request?.body?.isUnsent === undefined || this.#lastId > START_ID) return false;
    const isGone = fault.status === 404 && this.streamId !== null;
    return isGone || (fault instanceof ConnectionLost && this.#request.body.isUnsent());
  }

  #resumes(fault: ParleyError): boolean {
    if (fault instanceof ConnectionLost || fault instanceof Unnumbered || fault instanceof Gap) return true;
    const status = fault.status ?? 0;
    if (fault instanceof NotUnderstood) return PROXY_FAULTS.has(status);
    return status === 429 || status === 503 || (this.streamId !== null && status >= 500);
  }

  /** Yield the new events of one connection. */
  async *#connection(): AsyncGenerator<StreamEvent> {
    const connection = new AbortController();
    const abort = () => connection.abort(this.#signal.reason);
    if (this.#signal.aborted) throw reasonOf(this.#signal);
    this.#signal.addEventListener("abort", abort);
    const request = this.#nextRequest();
    let lost: ConnectionLost | null = null;
    const close = (reason: string) => connection.abort((lost = new ConnectionLost(reason)));
    const giveUp = () => close("there is no response");
    this.#drop = () => close("the connection was dropped");
    const silence = request.body?.isUnsent ? undefined : setTimeout(giveUp, SILENCE_MS);
    try {
      const response = await this.#caller.call({ ...request, signal: connection.signal });
      clearTimeout(silence);
      this.streamId = response.headers.get("X-Service-Stream-Id") ?? this.streamId;
      this.conversationId = response.headers.get("X-Service-Conversation-Id") ?? this.conversationId;
      if (this.streamId === null) throw new NotUnderstood("the response is not a stream", { status: response.status });
      this.#setOpened();
      this.#setConnection("open");
      const parser = new SseParser();
      for await (const bytes of piecesOf(response)) {
        for (const message of parser.feed(bytes)) {
          const event = this.#read(message);
          if (event !== null) yield event;
        }
      }
    } catch (error) {
      throw lost ?? error;
    } finally {
      this.#drop = () => {};
      clearTimeout(silence);
      this.#signal.removeEventListener("abort", abort);
      connection.abort(); // It closes the connection if the stream has not been read to its end.
    }
  }

  #nextRequest(): ApiRequest {
    if (this.streamId === null) return this.#request!;
    const path = `/bp/ai/stream/${segment(this.streamId)}`;
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
    const content = event.content as { text: string; digest: SentDigest };
    if (event.name === "assistant_output_chunk") this.#digest.addText(content.text);
    else if ("bytes" in event) this.#digest.addAudio(event.bytes as Uint8Array);
    else if (event.name === "end" && !this.#digest.matches(content.digest)) throw new DigestMismatch(this.streamId, event);
  }
}

function parsedEvent({ name, data }: Message, id: number): StreamEvent {
  try {
    const { content, timestamp } = JSON.parse(data) as { content: Contents; timestamp: number };
    const event = { id, name, content, timestamp };
    if (AUDIO.has(name)) return { ...event, bytes: fromBase64(content.audio) } as StreamEvent;
    if (name === "assistant_output_chunk" && typeof content.text !== "string") throw new TypeError("it has no text");
    if (name === "end" && typeof content.digest.sha256 !== "string") throw new TypeError("it has no digest");
    if (name === "error" && typeof content.error.message !== "string") throw new TypeError("it has no message");
    return event;
  } catch (cause) {
    throw new NotUnderstood(`an event ${name} of the stream is malformed`, { cause });
  }
}

function errorIn(event: StreamEvent): ParleyError {
  const { error } = event.content as Contents;
  return new ParleyError(error.error_type, error.message, { extra: { ...error.extra } });
}

/** The fields of contents that are checked. */
interface Contents {
  audio: string;
  text: string;
  digest: SentDigest;
  error: StreamError;
}
