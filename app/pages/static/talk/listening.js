// What the user says while the button is held: recorded, or sent while it is said.

import { Microphone, MicrophoneFault } from "./microphone.js";
import { LiveBody, canUploadLive } from "./upload.js";

const SHORTEST_S = 0.3;
const LONGEST_MS = 120_000;

export class Listening {
  /** Whether the button is held, and whether the microphone is open by now. */
  held = false;
  open = false;
  /** How loud it is, from 0 to 1. */
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
   * Listen. Where a body can be sent while it is made, `send` gets it, with what stands before the audio already
   * in it: `send(head)` names that. `onLimit` is told when it has been held for too long.
   */
  async hold({ head, send, onLimit }) {
    [this.held, this.open] = [true, false];
    this.#onChange();
    try {
      const began = await this.#microphone.start({ onPiece: (piece) => this.#live?.push(piece) });
      if (!began) throw new MicrophoneFault("early");
    } catch (error) {
      this.held = false;
      throw error;
    }
    this.open = true;
    this.#limit = setTimeout(onLimit, LONGEST_MS);
    if (canUploadLive()) {
      this.#live = new LiveBody(head());
      send(this.#live.stream);
    }
    this.#onChange();
  }

  /** What was said, in base64, whether or not it was sent while it was said; empty: the microphone was not open yet. */
  async letGo() {
    const heard = this.open;
    [this.held, this.open] = [false, false];
    clearTimeout(this.#limit);
    this.#onChange();
    const { base64, seconds } = await this.#microphone.stop();
    const live = this.#live;
    this.#live = null;
    if (!heard) return "";
    if (seconds < SHORTEST_S) throw new MicrophoneFault("short");
    live?.end();
    return base64;
  }
}
