// Audio scheduled through WebAudio, one buffer after the other.

import { Loudness } from "./loudness.js";
import type { SoundListener } from "./sound.js";

const LEAD_S = 0.03; // between scheduling the first sample and its start

// Shared by all answers of one rate, because browsers allow few contexts and a gesture unlocks only an existing one.
let shared: AudioContext | null = null;

function contextOf(sampleRate: number): AudioContext {
  if (shared?.sampleRate !== sampleRate) {
    void shared?.close();
    shared = new AudioContext({ sampleRate, latencyHint: "interactive" });
  }
  return shared;
}

/** A stretch without a gap: its start on the context's clock and in the audio. */
interface Span {
  atS: number;
  fromS: number;
  lengthS: number;
}

/** Plays `AudioBuffer`s one after the other, and knows the playback position. */
export class Schedule {
  readonly context: AudioContext;
  readonly #listener: SoundListener;
  readonly #out: GainNode;
  readonly #spans: Span[] = [];
  readonly #running = new Set<AudioBufferSourceNode>();
  readonly #listeners = new AbortController();
  readonly #loudness = new Loudness();
  #complete = false;
  #finalMs: number | null = null;

  constructor(sampleRate: number, listener: SoundListener) {
    this.context = contextOf(sampleRate);
    this.#listener = listener;
    this.#out = this.context.createGain();
    this.#out.connect(this.context.destination);
    this.context.addEventListener("statechange", () => this.#changed(), { signal: this.#listeners.signal });
    this.resume();
  }

  get lengthMs(): number {
    return 1000 * this.#lengthS;
  }

  play(buffer: AudioBuffer): void {
    this.#loudness.add(buffer.getChannelData(0), buffer.sampleRate, this.lengthMs);
    const atS = this.#reserve(buffer.duration);
    const source = new AudioBufferSourceNode(this.context, { buffer });
    source.connect(this.#out);
    source.addEventListener("ended", () => this.#finished(source), { signal: this.#listeners.signal });
    source.start(atS);
    this.#running.add(source);
    this.#changed();
  }

  end(): void {
    this.#complete = true;
    if (this.#running.size === 0) this.#finished(null);
  }

  stop(): void {
    this.#finalMs ??= this.playedMs;
    this.#listeners.abort();
    this.#out.disconnect();
    for (const source of this.#running) source.stop();
    this.#running.clear();
  }

  resume(): void {
    if (this.context.state !== "running") this.context.resume().catch(() => {});
  }

  get playedMs(): number {
    if (this.#finalMs !== null) return this.#finalMs;
    const nowS = this.context.currentTime - (this.context.outputLatency || 0);
    const span = this.#spans.filter(({ atS }) => atS <= nowS).at(-1);
    return span ? 1000 * (span.fromS + Math.min(span.lengthS, nowS - span.atS)) : 0;
  }

  get level(): number {
    return this.#loudness.at(this.playedMs);
  }

  get #lengthS(): number {
    const last = this.#spans.at(-1);
    return last ? last.fromS + last.lengthS : 0;
  }

  /** Return the start time of the next `lengthS`: directly after the scheduled audio, or soon if that is over. */
  #reserve(lengthS: number): number {
    const last = this.#spans.at(-1);
    const endS = last ? last.atS + last.lengthS : -Infinity;
    if (last && endS >= this.context.currentTime) {
      last.lengthS += lengthS;
      return endS;
    }
    const atS = this.context.currentTime + LEAD_S;
    const fromS = this.#lengthS;
    if (last) this.#listener.gap(1000 * fromS, 1000 * (atS - endS));
    this.#spans.push({ atS, fromS, lengthS });
    return atS;
  }

  #finished(source: AudioBufferSourceNode | null): void {
    if (source) this.#running.delete(source);
    if (this.#running.size > 0) return;
    if (!this.#complete) {
      this.#listener.late();
      return;
    }
    this.#finalMs = this.lengthMs;
    this.#listener.ended();
  }

  #changed(): void {
    if (this.#running.size === 0) return;
    if (this.context.state === "running") this.#listener.playing();
    else if (navigator.userActivation?.hasBeenActive === false) this.#listener.blocked();
  }
}
