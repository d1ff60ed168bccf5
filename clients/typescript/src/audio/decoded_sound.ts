// Plays audio of any format that the browser cannot stream. Each paragraph is decoded when it is complete.

import { joined } from "../streams/bytes.js";
import { Schedule } from "./schedule.js";
import type { Sound, SoundListener } from "./sound.js";

export class DecodedSound implements Sound {
  readonly #schedule: Schedule;
  readonly #listener: SoundListener;
  readonly #starts = new Map<number, number>();
  #index: number | null = null;
  #pieces: Uint8Array[] = [];
  #order: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(sampleRate: number, listener: SoundListener) {
    this.#schedule = new Schedule(sampleRate, listener);
    this.#listener = listener;
  }

  push(bytes: Uint8Array, index: number): void {
    if (index !== this.#index) this.#decode();
    this.#index = index;
    this.#pieces.push(bytes);
  }

  end(): void {
    this.#decode();
    this.#then(() => this.#schedule.end());
  }

  stop(): void {
    this.#stopped = true;
    this.#schedule.stop();
  }

  resume(): void {
    this.#schedule.resume();
  }

  get playedMs(): number {
    return this.#schedule.playedMs;
  }

  get level(): number {
    return this.#schedule.level;
  }

  startOf(index: number): number | null {
    return this.#starts.get(index) ?? null;
  }

  #decode(): void {
    if (this.#index === null || this.#pieces.length === 0) return;
    const [index, file] = [this.#index, joined(this.#pieces)];
    this.#pieces = [];
    this.#then(() => this.#play(index, file));
  }

  /** Paragraphs are decoded in order. */
  #then(action: () => unknown): void {
    this.#order = this.#order.then(async () => {
      if (!this.#stopped) await action();
    });
  }

  async #play(index: number, file: Uint8Array): Promise<void> {
    try {
      const buffer = await this.#schedule.context.decodeAudioData(file.buffer as ArrayBuffer);
      if (this.#stopped) return;
      this.#starts.set(index, this.#schedule.lengthMs);
      this.#schedule.play(buffer);
    } catch {
      if (!this.#stopped) this.#listener.failed();
    }
  }
}
