// One turn of a conversation: the user's input goes out, and the answer comes in as events.

import type { ConversationEnd, TurnDetection } from "../api.js";
import { randomId } from "../crypto/encodings.js";
import { leavingWith } from "../http/aborting.js";
import { readsWhileSending } from "../http/live.js";
import type { ApiRequest, Caller } from "../http/transport.js";
import type { AbortSignalLike } from "../http/web.js";
import { rounded } from "../numbers.js";
import { cancelStream } from "./cancel.js";
import { EventStream, type ConnectionState, type OnConnection } from "./event_stream.js";
import type { ConversationEvent } from "./events.js";
import { encodedAudio, encodedText, Input, inputBody, type Pieces } from "./input.js";
import { SingleReading } from "./single_reading.js";

export interface ReadOptions {
  /** Stops reading. To stop the answer too, call `interrupt`. */
  signal?: AbortSignalLike | undefined;
  /** Called whenever the connection was opened, was lost, or is no longer needed. */
  onConnection?: OnConnection | undefined;
}

export interface ConverseOptions extends ReadOptions {
  /** Names of conversation strategies, in the order in which they are tried. */
  strategies: string[];
  /** What the user says, as text. Either this or `audio` is given. */
  text?: Pieces<string> | undefined;
  /** What the user says, as 16 kHz mono 16-bit PCM or as a file, in pieces of any size, as it is recorded. */
  audio?: Pieces<Uint8Array> | undefined;
  /** Language of the user's input. */
  languageCode: string;
  /** Language of the answer. By default, that of the input. */
  targetLanguageCode?: string | undefined;
  /** The conversation to continue. By default, a new one begins. */
  conversationId?: string | null | undefined;
  voice?: string | undefined;
  sttPrompt?: string | undefined;
  /**
   * With PCM or WAV as `audio`: the server hears when the user has finished speaking, sends `end_of_speech` and answers.
   * No more is read from `audio` then, which need not end. In browsers and React Native, whose `fetch` reads no response
   * while it sends, `audio` must be one `Uint8Array`: `HandsFree` of `parley-client/audio` is for them.
   */
  turnDetection?: TurnDetection | undefined;
  /** Values for the system prompt's template. */
  params?: Record<string, unknown> | undefined;
  /** By default, each turn has a new key. The same key and options get the same answer, which is made once. */
  idempotencyKey?: string | undefined;
}

export class Turn implements AsyncIterable<ConversationEvent> {
  /** The last event of the turn, as soon as it has arrived. */
  end: ConversationEnd | null = null;
  /** What the user has said, once it is recognized. */
  userInput: string | null = null;
  /** What precedes the input in the request. Null: the turn was resumed. */
  readonly parameters: Record<string, unknown> | null;
  readonly idempotencyKey: string | null;
  readonly #caller: Caller;
  readonly #input: Input | null;
  readonly #stream: EventStream;
  readonly #leaving = new AbortController();
  readonly #paragraphs: string[] = [];
  readonly #events = new SingleReading(() => this.#read());

  /** `origin` is what is said, or the id of the stream of a turn that was said before. */
  constructor(caller: Caller, origin: ConverseOptions | string, { signal, onConnection }: ReadOptions = {}) {
    this.#caller = caller;
    const resumed = typeof origin === "string";
    this.parameters = resumed ? null : parametersOf(origin);
    this.idempotencyKey = resumed ? null : (origin.idempotencyKey ?? randomId());
    this.#input = resumed ? null : this.#inputOf(origin);
    const leaving = leavingWith(this.#leaving, signal);
    this.#stream = new EventStream(caller, resumed ? origin : this.#requestOf(origin), leaving, onConnection);
  }

  #inputOf({ text, audio, turnDetection }: ConverseOptions): Input {
    if ((text === undefined) === (audio === undefined)) throw new TypeError("either text or audio is required");
    const complete = audio === undefined || audio instanceof Uint8Array;
    if (turnDetection && !complete && !(this.#caller.canUploadLive && readsWhileSending())) {
      throw new TypeError(
        "turnDetection cannot end `audio` here, where no response is read while the request is sent: " +
          "use hands-free of parley-client/audio, or give `audio` as one Uint8Array",
      );
    }
    const source = audio !== undefined ? encodedAudio(audio) : encodedText(text!);
    return new Input(source, (error) => this.#leaving.abort(error));
  }

  #requestOf({ text }: ConverseOptions): ApiRequest {
    const live = this.#caller.canUploadLive && typeof text !== "string";
    const body = inputBody(this.parameters, this.#input!, { live });
    const headers = { "Idempotency-Key": this.idempotencyKey! };
    return { method: "POST", path: "/bp/ai/conversation", headers, body };
  }

  /** Known as soon as the first event has arrived. */
  get streamId(): string | null {
    return this.#stream.streamId;
  }

  /** The `conversationId` of the next turn. Known as soon as the first event has arrived. */
  get conversationId(): string | null {
    return this.#stream.conversationId;
  }

  /** The state of the connection. A lost one is restored by itself. */
  get connection(): ConnectionState {
    return this.#stream.connection;
  }

  /** The answer so far. Its paragraphs are separated by blank lines. */
  get text(): string {
    return this.#paragraphs.join("\n\n");
  }

  /**
   * The events, each once and in order, up to `end`. Lost connections are resumed. The request is sent when the first
   * event is asked for. Leaving the loop early closes the connection; the server finishes the answer by itself.
   *
   * Throws `ParleyError` if the turn fails.
   */
  [Symbol.asyncIterator](): AsyncGenerator<ConversationEvent> {
    return this.#events.events();
  }

  /** Read all events that remain. Return the content of `end`. Throws if a loop was left before `end`. */
  async finish(): Promise<ConversationEnd> {
    if (this.end === null) await this.#events.finish();
    return this.end!;
  }

  /**
   * Stop the answer, because the user has interrupted it.
   *
   * `heardMs` are the milliseconds of its audio that were played: the history keeps only the words spoken until then.
   * Without it, the history keeps all that has been said. The events go on to an `end` with `canceled`. When this
   * returns, the next turn may begin.
   */
  async interrupt({ heardMs = null }: { heardMs?: number | null | undefined } = {}): Promise<void> {
    const heard = heardMs === null ? null : rounded("heardMs", heardMs);
    if (this.#events.begun && this.streamId === null) await this.#stream.opened;
    if (this.streamId !== null) return cancelStream(this.#caller, this.streamId, heard);
    if (!this.#events.begun) this.#events.cancel();
    this.#leaving.abort();
  }

  /** Close the connection, to see what happens on an unreliable network. The turn is resumed by itself. */
  dropConnection(): void {
    this.#stream.dropConnection();
  }

  async *#read(): AsyncGenerator<ConversationEvent> {
    try {
      for await (const event of this.#stream.events()) {
        this.#apply(event as ConversationEvent);
        yield event as ConversationEvent;
      }
    } finally {
      this.#input?.close();
    }
  }

  #apply(event: ConversationEvent): void {
    switch (event.name) {
      case "end_of_speech":
        this.#input?.close();
        break;
      case "user_input":
        this.userInput = event.content;
        break;
      case "assistant_output_chunk":
        this.#paragraphs[event.content.index] = (this.#paragraphs[event.content.index] ?? "") + event.content.text;
        break;
      case "assistant_output_restart":
        this.#paragraphs.length = Math.min(this.#paragraphs.length, event.content.from_index);
        break;
      case "end":
        this.end = event.content;
        break;
    }
  }
}

function parametersOf(options: ConverseOptions): Record<string, unknown> {
  return {
    strategies: options.strategies,
    type: options.audio === undefined ? "text" : "audio",
    language_code: options.languageCode,
    target_language_code: options.targetLanguageCode ?? options.languageCode,
    ...(options.conversationId && { conversation_id: options.conversationId }),
    ...(options.voice !== undefined && { voice: options.voice }),
    ...(options.sttPrompt !== undefined && { stt_prompt: options.sttPrompt }),
    ...(options.turnDetection !== undefined && { turn_detection: sentDetection(options.turnDetection) }),
    ...(options.params !== undefined && { params: options.params }),
  };
}

function sentDetection(detection: TurnDetection): TurnDetection {
  const { silence_ms: silenceMs } = detection;
  return silenceMs === undefined ? detection : { ...detection, silence_ms: rounded("silence_ms", silenceMs) };
}
