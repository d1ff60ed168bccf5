// The loudness of audio by its position, so that a page can show how loud an answer is while it plays.

const WINDOW_MS = 50;
/** Used where the browser cannot decode the audio. */
const UNKNOWN = 0.3;
/** Speech is seldom as loud as a full scale. This root mean square is shown as 1. */
const LOUD = 0.25;

export class Loudness {
  readonly #levels: number[] = []; // one for each window

  /** Add samples from -1 to 1, which begin at `fromMs`. */
  add(samples: Float32Array, sampleRate: number, fromMs: number): void {
    const size = Math.round((sampleRate * WINDOW_MS) / 1000);
    const first = Math.round(fromMs / WINDOW_MS);
    for (let at = 0, window = first; at < samples.length; at += size, window += 1) {
      let sum = 0;
      const end = Math.min(at + size, samples.length);
      for (let index = at; index < end; index += 1) sum += samples[index]! ** 2;
      this.#levels[window] = Math.max(this.#levels[window] ?? 0, Math.min(1, Math.sqrt(sum / (end - at)) / LOUD));
    }
  }

  /** Return the loudness at a position. */
  at(ms: number): number {
    return this.#levels[Math.floor(ms / WINDOW_MS)] ?? (this.#levels.length > 0 ? 0 : UNKNOWN);
  }
}
