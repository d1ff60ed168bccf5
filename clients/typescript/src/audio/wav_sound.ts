// Plays WAV while it arrives, one file per paragraph: a header and 16-bit samples. Pieces may be cut anywhere.

import { joined } from "../streams/bytes.js";
import { Schedule } from "./schedule.js";
import type { Sound, SoundListener } from "./sound.js";
import { wavFormat, type WavFormat } from "./wav.js";

export class WavSound implements Sound {
  readonly #schedule: Schedule;
  readonly #starts = new Map<number, number>();
  #head: Uint8Array | null = null; // the bytes of an incomplete header
  #partial: Uint8Array = new Uint8Array(0);
  #format: WavFormat | null = null;

  constructor(sampleRate: number, listener: SoundListener) {
    this.#schedule = new Schedule(sampleRate, listener);
  }

  push(bytes: Uint8Array, index: number): void {
    if (!this.#starts.has(index)) {
      this.#starts.set(index, this.#schedule.lengthMs);
      this.#head = new Uint8Array(0);
      this.#partial = new Uint8Array(0);
    }
    const samples = this.#head === null ? bytes : this.#afterHeader(this.#head, bytes);
    if (samples.length > 0 && this.#format) this.#play(joined([this.#partial, samples]), this.#format);
  }

  end(): void {
    this.#schedule.end();
  }

  stop(): void {
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

  #afterHeader(begun: Uint8Array, bytes: Uint8Array): Uint8Array {
    const head = joined([begun, bytes]);
    const format = wavFormat(head);
    this.#head = format === null ? head : null;
    if (format === null) return new Uint8Array(0);
    this.#format = format;
    return head.subarray(format.offset);
  }

  #play(bytes: Uint8Array, { channels, sampleRate }: WavFormat): void {
    const frames = Math.floor(bytes.length / (2 * channels));
    this.#partial = bytes.slice(frames * 2 * channels);
    if (frames === 0) return;
    const buffer = new AudioBuffer({ length: frames, numberOfChannels: channels, sampleRate });
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    for (let channel = 0; channel < channels; channel += 1) {
      const samples = buffer.getChannelData(channel);
      for (let at = 0; at < frames; at += 1) {
        samples[at] = view.getInt16(2 * (at * channels + channel), true) / 0x8000;
      }
    }
    this.#schedule.play(buffer);
  }
}
