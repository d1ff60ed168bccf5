// Records the user while the button is held. Where the browser can, the audio is sent while it is recorded.

import { Microphone, MicrophoneFault } from "./microphone.js";
import { LiveBody, canUploadLive } from "./upload.js";

const SHORTEST_S = 0.3;
const LONGEST_MS = 120_000;

export class Recorder {
  /** `held`: whether the button is held. `open`: whether the microphone is open. */
  held = false;
  open = false;
  /** The volume, from 0 to 1. */
  level = 0;
  #onChange;
  #live = null;
  #limit = null;
  #microphone = new Microphone({
    onLevel: (level) => {
      this.level = level;
      this.#onChange();
    },
  });

  constructor(onChange) {
    this.#onChange = onChange;
  }

  /**
   * Start recording. If the browser can send a body while it is produced, `send` is called with that body, which
   * begins with the text that `head()` returns. `onLimit` is called when the maximum duration is reached.
   */
  async hold({ head, send, onLimit }) {
    [this.held, this.open] = [true, false];
    this.#onChange();
    try {
      const started = await this.#microphone.start({ onPiece: (piece) => this.#live?.push(piece) });
      if (!started) throw new MicrophoneFault("early");
    } catch (error) {
      this.held = false;
      throw error;
    }
    this.open = true;
    this.#limit = setTimeout(onLimit, LONGEST_MS);
    if (canUploadLive()) {
      this.#live = new LiveBody(head() + this.#microphone.recorded);
      send(this.#live.stream);
    }
    this.#onChange();
  }

  /** Keep the microphone open and call `onSamples` with all that it hears, until `ignore` is called. */
  listen(onSamples) {
    return this.#microphone.listen(onSamples);
  }

  ignore() {
    this.#microphone.ignore();
  }

  /** Stop recording. Return the audio in base64, also if it has been sent; empty if the microphone was not open yet. */
  async release() {
    const wasOpen = this.open;
    [this.held, this.open] = [false, false];
    clearTimeout(this.#limit);
    this.#onChange();
    const { base64, seconds } = await this.#microphone.stop();
    const live = this.#live;
    this.#live = null;
    if (!wasOpen) return "";
    if (seconds < SHORTEST_S) throw new MicrophoneFault("short");
    live?.end();
    return base64;
  }
}
