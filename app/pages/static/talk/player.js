// Plays the audio of an answer while it arrives, and reports the playback position.

import { DecodedSound, WavSound } from "./sound_samples.js";
import { StreamedSound, canStream } from "./sound_stream.js";

const GAP_MS = 50; // Shorter gaps are not audible.
const GESTURES = ["keydown", "mousedown", "pointerup", "touchend"]; // After one of these, browsers allow audio.

/**
 * Plays one answer at a time: `begin`, `push` …, `end`; `stop` at any time. `onState` is called with
 * "idle", "waiting" (for audio), "playing", "blocked" (until the user touches the page) or "failed".
 */
export class Player {
  #onState;
  #audio = new Audio();
  #sound = null;
  #format = null; // of the answer whose audio is arriving
  #state = "idle";
  #played_ms = 0; // of the last answer
  #gaps = [];

  constructor({ onState = () => {} } = {}) {
    this.#onState = onState;
    for (const gesture of GESTURES) document.addEventListener(gesture, () => this.#unlock(), { capture: true });
  }

  /** Start the audio of an answer. A repeated call with the same format continues it with a later paragraph. */
  begin(mimeType, sampleRate) {
    const format = `${mimeType} ${sampleRate}`;
    if (this.#format === format) return;
    this.stop();
    this.#format = format;
    this.#gaps = [];
    this.#played_ms = 0;
    this.#setState("waiting");
    this.#sound = this.#soundOf(mimeType, sampleRate);
  }

  /** Add bytes of paragraph `index`, in order. */
  push(bytes, index = 0) {
    if (this.#format !== null) this.#sound?.push(bytes, index);
  }

  /** Note that all audio of the answer has arrived. The rest is played. */
  end() {
    if (this.#format !== null) this.#sound?.end();
    this.#format = null;
  }

  /** Stop immediately. Return `playedMs`. */
  stop() {
    this.#format = null;
    this.#finish("idle");
    return this.playedMs;
  }

  /** "idle", "waiting", "playing", "blocked" or "failed". */
  get state() {
    return this.#state;
  }

  /** Whether an answer is being played, or waits for its audio. */
  get playing() {
    return this.#sound !== null;
  }

  /** Milliseconds of the answer's audio that were played. The value is kept until the next answer begins. */
  get playedMs() {
    return Math.round(this.#sound?.playedMs ?? this.#played_ms);
  }

  /** Return the start of paragraph `index` in milliseconds of audio, or null if it has not arrived. */
  startOf(index) {
    const start_ms = this.#sound?.startOf(index) ?? null;
    return start_ms === null ? null : Math.round(start_ms);
  }

  /** Audible gaps in the answer because audio arrived late: `{at_ms, ms}`. */
  get gaps() {
    return [...this.#gaps];
  }

  #soundOf(mimeType, sampleRate) {
    const listener = {
      playing: () => this.#setState("playing"),
      late: () => this.#setState("waiting"),
      blocked: () => this.#setState("blocked"),
      ended: () => this.#finish("idle"),
      failed: () => this.#finish("failed"),
      gap: (at_ms, ms) => {
        if (ms > GAP_MS) this.#gaps.push({ at_ms: Math.round(at_ms), ms: Math.round(ms) });
      },
    };
    if (mimeType === "audio/wav") return new WavSound(sampleRate, listener);
    if (canStream(mimeType)) return new StreamedSound(this.#audio, listener, mimeType);
    return new DecodedSound(sampleRate, listener);
  }

  #finish(state) {
    const sound = this.#sound;
    if (sound === null) return;
    this.#played_ms = sound.playedMs;
    this.#sound = null;
    sound.stop();
    this.#setState(state);
  }

  #setState(state) {
    if (this.#state === state) return;
    this.#state = state;
    this.#onState(state);
  }

  #unlock() {
    if (this.#sound === null) this.#audio.load(); // Some browsers unlock an element only by a call within a gesture.
    else this.#sound.resume();
  }
}
