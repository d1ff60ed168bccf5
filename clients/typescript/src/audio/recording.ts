// A recording of the microphone, which can be read while it is made, and again afterwards.

import { joined } from "../streams/bytes.js";
import { MicrophoneFault } from "./faults.js";
import { RATE } from "./format.js";

const BYTES_PER_S = 2 * RATE;

/** Why a recording ended: by `stop`, by `cancel`, at its maximum, or because the microphone was unplugged. */
export type RecordingEnd = "stopped" | "canceled" | "limit" | "lost";

/** What a recording asks of its microphone. */
export interface RecordingSource {
  /** Deliver the samples that are still on their way. */
  flush(): Promise<void>;
  /** Note that the recording needs no more samples. */
  release(): void;
}

/**
 * 16 kHz mono 16-bit PCM, as `audio` of a turn or an assessment takes it. Each iteration yields the recording from its
 * beginning, in pieces of a multiple of 3 bytes except for the last one, and goes on while it is made. Nothing is
 * yielded before its minimum is recorded.
 */
export class Recording implements AsyncIterable<Uint8Array> {
  /** Resolves with the reason when the recording has ended. */
  readonly ended: Promise<RecordingEnd>;
  readonly #source: RecordingSource;
  readonly #pieces: Uint8Array[];
  readonly #shortestBytes: number;
  readonly #longestBytes: number;
  #length: number;
  #end: RecordingEnd | null = null;
  #resolveEnded: (end: RecordingEnd) => void = () => {};
  #wake: () => void = () => {};
  #changed = new Promise<void>((resolve) => (this.#wake = resolve));

  /** `before`: what was heard before the recording, with which it begins. */
  constructor(
    source: RecordingSource,
    before: Uint8Array[],
    { minSeconds, maxSeconds }: { minSeconds: number; maxSeconds: number },
  ) {
    this.#source = source;
    this.#pieces = before;
    this.#length = before.reduce((length, piece) => length + piece.length, 0);
    this.#shortestBytes = minSeconds * BYTES_PER_S;
    this.#longestBytes = maxSeconds * BYTES_PER_S;
    this.ended = new Promise((resolve) => (this.#resolveEnded = resolve));
  }

  /** How much is recorded. */
  get seconds(): number {
    return this.#length / BYTES_PER_S;
  }

  /** All that is recorded. */
  get bytes(): Uint8Array {
    return joined(this.#pieces);
  }

  /** Stop, and wait for the last samples. The iterations end. */
  async stop(): Promise<void> {
    if (this.#end === null) await this.#source.flush();
    this.finish("stopped");
  }

  /** Stop and discard. The iterations throw, so that a turn that is being sent is given up. */
  cancel(): void {
    this.finish("canceled");
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (let position = 0; ; position += 1) {
      while (this.#end === null && (this.#isShort || position >= this.#pieces.length)) await this.#changed;
      if (this.#end === "canceled") throw new MicrophoneFault("canceled");
      if (this.#isShort) throw new MicrophoneFault("short");
      const piece = this.#pieces[position];
      if (piece === undefined) return;
      yield piece;
    }
  }

  get #isShort(): boolean {
    return this.#length < this.#shortestBytes;
  }

  /** Called by the microphone with the next piece. */
  add(piece: Uint8Array): void {
    if (this.#end !== null) return;
    this.#pieces.push(piece);
    this.#length += piece.length;
    this.#notify();
    if (this.#length >= this.#longestBytes) this.finish("limit");
  }

  /** Called by the microphone when it delivers no more. The first reason counts. */
  finish(end: RecordingEnd): void {
    if (this.#end !== null) return;
    this.#end = end;
    this.#source.release();
    this.#resolveEnded(end);
    this.#notify();
  }

  #notify(): void {
    this.#wake();
    this.#changed = new Promise((resolve) => (this.#wake = resolve));
  }
}
