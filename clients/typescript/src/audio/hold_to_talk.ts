// A recording that is made while a button is held.

import { MicrophoneFault } from "./faults.js";
import { LONGEST_S, SHORTEST_S } from "./format.js";
import type { Microphone } from "./microphone.js";
import type { Recording } from "./recording.js";

export class HoldToTalk {
  readonly #microphone: Microphone;
  #press: symbol | null = null;
  #recording: Recording | null = null;

  constructor(microphone: Microphone) {
    this.#microphone = microphone;
  }

  /** Whether the button is held. A recording that ends by itself ends this as well. */
  get held(): boolean {
    return this.#press !== null;
  }

  /**
   * The user presses the button. Return the recording as soon as the microphone is open. Throws `MicrophoneFault`, with
   * `early` if the button was released before that. If less than 0.3 s are recorded, reading the recording throws `short`.
   */
  async press(): Promise<Recording> {
    const press = Symbol();
    this.#press = press;
    try {
      await this.#microphone.open();
      if (this.#press !== press) throw new MicrophoneFault("early");
      const recording = this.#microphone.record({ minSeconds: SHORTEST_S, maxSeconds: LONGEST_S });
      this.#recording = recording;
      void recording.ended.then(() => this.#released(press));
      return recording;
    } catch (error) {
      this.#released(press);
      throw error;
    }
  }

  /** The user releases the button. The recording is complete when this resolves. */
  async release(): Promise<void> {
    const recording = this.#recording;
    this.#released(this.#press);
    await recording?.stop();
  }

  #released(press: symbol | null): void {
    if (this.#press !== press) return;
    this.#press = null;
    this.#recording = null;
  }
}
