// The mode without hands: an utterance begins when the user speaks, and a pause ends it.

import { VoiceDetection } from "./voice_detection.js";

export class HandsFree {
  #recorder;
  #player;
  #onBegan;
  #onEnded;
  #detection = null;
  #spoken = false; // whether the current recording is an utterance that this mode has begun

  /** `onBegan` and `onEnded` are called when an utterance of the user begins and ends. */
  constructor(recorder, player, { onBegan, onEnded }) {
    this.#recorder = recorder;
    this.#player = player;
    this.#onBegan = onBegan;
    this.#onEnded = onEnded;
  }

  get on() {
    return this.#detection !== null;
  }

  async start() {
    const detection = await VoiceDetection.load();
    await this.#recorder.listen((samples) => this.#hear(samples));
    this.#detection = detection;
  }

  stop() {
    this.#recorder.ignore();
    this.#detection?.free();
    [this.#detection, this.#spoken] = [null, false];
  }

  #hear(samples) {
    for (const change of this.#detection?.push(samples, { overAnswer: this.#player.playing }) ?? []) {
      if (change === "began" && !this.#recorder.held) {
        this.#spoken = true;
        this.#onBegan();
      } else if (change === "ended" && this.#spoken) {
        this.#spoken = false;
        this.#onEnded();
      }
    }
  }
}
