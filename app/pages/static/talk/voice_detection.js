// Detects when somebody speaks, by WebRTC's voice activity detection, compiled to WebAssembly.

import loadFvad from "../vendor/fvad.js";

const RATE = 16_000;
const FRAME = 480; // samples: 30 ms, the longest that the detection accepts
const MODE = 3; // the one that takes the fewest sounds for a voice
const WINDOW = 10; // frames
const BEGINS = 6; // frames of the window with a voice
const BEGINS_OVER_ANSWER = 10; // The microphone also hears some of the answer.
const PAUSE_FRAMES = 27; // 810 ms without a voice end an utterance.

/** Groups frames with and without a voice to utterances. */
export class Utterances {
  #window = [];
  #silent = 0;
  #speaking = false;

  /** Add a frame. Return "began" or "ended" if an utterance begins or ends with it, else null. */
  push(voiced, { overAnswer = false } = {}) {
    this.#window.push(voiced);
    if (this.#window.length > WINDOW) this.#window.shift();
    this.#silent = voiced ? 0 : this.#silent + 1;
    if (!this.#speaking) {
      const needed = overAnswer ? BEGINS_OVER_ANSWER : BEGINS;
      if (this.#window.filter(Boolean).length < needed) return null;
      this.#speaking = true;
      return "began";
    }
    if (this.#silent < PAUSE_FRAMES) return null;
    [this.#speaking, this.#window] = [false, []];
    return "ended";
  }
}

export class VoiceDetection {
  #fvad;
  #detector;
  #frame;
  #waiting = new Int16Array(0); // samples of an incomplete frame
  #utterances = new Utterances();

  static async load() {
    const detection = new VoiceDetection();
    const locateFile = () => new URL("../vendor/fvad-binary.wasm", import.meta.url).href;
    detection.#fvad = await loadFvad({ locateFile });
    detection.#detector = detection.#fvad._fvad_new();
    detection.#fvad._fvad_set_mode(detection.#detector, MODE);
    detection.#fvad._fvad_set_sample_rate(detection.#detector, RATE);
    detection.#frame = detection.#fvad._malloc(2 * FRAME);
    return detection;
  }

  /** Add samples. Return the changes, "began" or "ended", in order. `overAnswer`: whether an answer is played. */
  push(samples, { overAnswer }) {
    const joined = new Int16Array(this.#waiting.length + samples.length);
    joined.set(this.#waiting);
    joined.set(samples, this.#waiting.length);
    const changes = [];
    let at = 0;
    for (; at + FRAME <= joined.length; at += FRAME) {
      const change = this.#utterances.push(this.#isVoice(joined.subarray(at, at + FRAME)), { overAnswer });
      if (change) changes.push(change);
    }
    this.#waiting = joined.slice(at);
    return changes;
  }

  free() {
    this.#fvad._free(this.#frame);
    this.#fvad._fvad_free(this.#detector);
  }

  #isVoice(frame) {
    this.#fvad.HEAP16.set(frame, this.#frame / 2);
    return this.#fvad._fvad_process(this.#detector, this.#frame, FRAME) === 1;
  }
}
