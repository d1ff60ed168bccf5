// Whether a voice is loud enough to be that of the user. The detector hears voices 40 dB below those of a person at the
// microphone: somebody in the next room, or what the browser's echo cancellation leaves of an answer.

const NEAR = power(-60);
const NEAR_OVER_ANSWER = power(-45);
const SMOOTHING = 0.3; // the share of the newest frame

export class NearVoice {
  #power = 0;

  /** Add a frame. Return whether it and those before are loud enough. */
  push(frame: Int16Array, { overAnswer }: { overAnswer: boolean }): boolean {
    let sum = 0;
    for (const sample of frame) sum += (sample / 0x8000) ** 2;
    this.#power += SMOOTHING * (sum / frame.length - this.#power);
    return this.#power >= (overAnswer ? NEAR_OVER_ANSWER : NEAR);
  }
}

/** Return the mean power of a level in dB below the full scale. */
function power(decibels: number): number {
  return 10 ** (decibels / 10);
}
