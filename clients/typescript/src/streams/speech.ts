// Text to speech: text goes out, and audio comes in as events.

import type { PlatformParams, SpeechEnd } from "../api.js";
import { randomId } from "../crypto/encodings.js";
import { leavingWith } from "../http/aborting.js";
import { jsonBody, type Caller } from "../http/transport.js";
import type { AbortSignalLike } from "../http/web.js";
import { joined } from "./bytes.js";
import { cancelStream } from "./cancel.js";
import { EventStream } from "./event_stream.js";
import type { SpeechEvent } from "./events.js";
import { SingleReading } from "./single_reading.js";

export interface SpeakOptions {
  /** Names of speech strategies, in the order in which they are tried. */
  strategies: string[];
  /** Overrides for the settings of strategies, by their platform. */
  platformParams?: PlatformParams[] | undefined;
  /** By default, each call has a new key. */
  idempotencyKey?: string | undefined;
  /** Stops reading. */
  signal?: AbortSignalLike | undefined;
}

export class Speech implements AsyncIterable<SpeechEvent> {
  /** The last event, as soon as it has arrived. */
  end: SpeechEnd | null = null;
  /** The type of the audio, such as `audio/mpeg`. Known with the first piece. */
  mimeType: string | null = null;
  readonly #caller: Caller;
  readonly #stream: EventStream;
  readonly #leaving = new AbortController();
  readonly #audio: Uint8Array[] = [];
  readonly #events = new SingleReading(() => this.#read());

  constructor(caller: Caller, text: string, options: SpeakOptions) {
    const { strategies, platformParams, idempotencyKey = randomId(), signal } = options;
    this.#caller = caller;
    const body = jsonBody({ text, strategies, ...(platformParams && { platform_params: platformParams }) });
    const headers = { "Idempotency-Key": idempotencyKey };
    const request = { method: "POST" as const, path: "/bp/ai/audio/tts", headers, body };
    this.#stream = new EventStream(caller, request, leavingWith(this.#leaving, signal));
  }

  get streamId(): string | null {
    return this.#stream.streamId;
  }

  /** The audio so far. At the end, it is one file of the type `mimeType`. */
  get audio(): Uint8Array {
    return joined(this.#audio);
  }

  /** The events, each once and in order, up to `end`. Lost connections are resumed. Throws `ParleyError`. */
  [Symbol.asyncIterator](): AsyncGenerator<SpeechEvent> {
    return this.#events.events();
  }

  /** Read all events that remain. Return the audio. Throws if a loop was left before `end`. */
  async finish(): Promise<Uint8Array> {
    if (this.end === null) await this.#events.finish();
    return this.audio;
  }

  /** Stop the synthesis. The events go on to an `end` with `canceled`. */
  async interrupt(): Promise<void> {
    if (this.#events.begun) await this.#stream.opened;
    if (this.streamId !== null) return cancelStream(this.#caller, this.streamId, null);
    if (!this.#events.begun) this.#events.cancel();
    this.#leaving.abort();
  }

  async *#read(): AsyncGenerator<SpeechEvent> {
    for await (const found of this.#stream.events()) {
      const event = found as SpeechEvent;
      if (event.name === "end") this.end = event.content;
      if (event.name === "audio_chunk") {
        this.#audio.push(event.bytes);
        this.mimeType ??= event.content.mime_type ?? null;
      }
      yield event;
    }
  }
}
