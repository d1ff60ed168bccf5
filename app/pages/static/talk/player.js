// Plays an answer's audio while it arrives, and tells where in it the listener is (§6.1: audio of paragraphs).

import { DecodedSound, WavSound } from "./sound_samples.js";
import { StreamedSound, streams } from "./sound_stream.js";

const GAP_MS = 50; // shorter silence is none to the ear
const GESTURES = ["keydown", "mousedown", "pointerup", "touchend"]; // after these a browser allows sound

/**
 * One answer at a time: `begin`, `push` …, `end`; `stop` at any time. `onState` hears
 * "idle", "waiting" (for audio), "playing", "blocked" (until the user touches the page) and "failed".
 */
export class Player {
  #onState;
  #audio = new Audio();
  #sound = null;
  #format = null; // of the answer whose audio still comes
  #state = "idle";
  #played_ms = 0; // of an answer that is over
  #gaps = [];

  constructor({ onState = () => {} } = {}) {
    this.#onState = onState;
    for (const gesture of GESTURES) document.addEventListener(gesture, () => this.#unlock(), { capture: true });
  }

  /** An answer's audio begins. Said again for a later paragraph of it, it goes on. */
  begin(mimeType, sampleRate) {
    const format = `${mimeType} ${sampleRate}`;
    if (this.#format === format) return;
    this.stop();
    this.#format = format;
    this.#gaps = [];
    this.#played_ms = 0;
    this.#tell("waiting");
    this.#sound = this.#soundOf(mimeType, sampleRate);
  }

  /** Bytes of paragraph `index`, in order. */
  push(bytes, index = 0) {
    if (this.#format !== null) this.#sound?.push(bytes, index);
  }

  /** All audio of the answer has come; what is left is played. */
  end() {
    if (this.#format !== null) this.#sound?.end();
    this.#format = null;
  }

  /** Silence, now. Returns `playedMs`. */
  stop() {
    this.#format = null;
    this.#leave("idle");
    return this.playedMs;
  }

  /** "idle", "waiting", "playing", "blocked" or "failed". */
  get state() {
    return this.#state;
  }

  /** Whether an answer is being played, or would be if its audio came. */
  get playing() {
    return this.#sound !== null;
  }

  /** Milliseconds of the answer's audio that were heard, from its first byte; kept until the next one begins. */
  get playedMs() {
    return Math.round(this.#sound?.playedMs ?? this.#played_ms);
  }

  /** Where the audio of paragraph `index` begins, in milliseconds; null as long as it has not come. */
  startOf(index) {
    const start_ms = this.#sound?.startOf(index) ?? null;
    return start_ms === null ? null : Math.round(start_ms);
  }

  /** Silence inside the answer because its audio came late: `{at_ms, ms}`. */
  get gaps() {
    return [...this.#gaps];
  }

  #soundOf(mimeType, sampleRate) {
    const told = {
      playing: () => this.#tell("playing"),
      late: () => this.#tell("waiting"),
      blocked: () => this.#tell("blocked"),
      over: () => this.#leave("idle"),
      failed: () => this.#leave("failed"),
      gap: (at_ms, ms) => {
        if (ms > GAP_MS) this.#gaps.push({ at_ms: Math.round(at_ms), ms: Math.round(ms) });
      },
    };
    if (mimeType === "audio/wav") return new WavSound(sampleRate, told);
    if (streams(mimeType)) return new StreamedSound(this.#audio, told, mimeType);
    return new DecodedSound(sampleRate, told);
  }

  #leave(state) {
    const sound = this.#sound;
    if (sound === null) return;
    this.#played_ms = sound.playedMs;
    this.#sound = null;
    sound.stop();
    this.#tell(state);
  }

  #tell(state) {
    if (this.#state === state) return;
    this.#state = state;
    this.#onState(state);
  }

  #unlock() {
    if (this.#sound === null) this.#audio.load(); // some browsers free an element only by a call inside a gesture
    else this.#sound.resume();
  }
}
