// The user's voice: what is recorded while the button is held or, hands-free, while the user speaks.

import { HandsFree, HoldToTalk } from "../client/parley-client.js";

export class Voice {
  /** Whether the button is held, or the user speaks. */
  active = false;
  /** Whether the microphone is open, and the user is heard. */
  heard = false;
  #microphone;
  #onChange;
  #recording = null;
  #button;
  #handsFree;

  /**
   * `onSpeech` is called with the recording when the user begins to speak hands-free. `onLost` is called if that mode has
   * ended because the microphone is gone.
   */
  constructor({ microphone, player, onSpeech, onLost, onChange }) {
    this.#microphone = microphone;
    this.#onChange = onChange;
    this.#button = new HoldToTalk(microphone);
    const onUtterance = (recording) => {
      onSpeech(recording); // This interrupts the answer, so it precedes the change to `active`.
      this.#begins(recording);
    };
    this.#handsFree = new HandsFree({ microphone, player, onUtterance, onLost });
  }

  /** Whether the button is held. */
  get held() {
    return this.#button.held;
  }

  get handsFree() {
    return this.#handsFree.on;
  }

  /** The volume of the user's voice, from 0 to 1. */
  get level() {
    return this.#microphone.level;
  }

  /** The user presses the button. Return the recording, which goes on until the user releases it. */
  async hold() {
    this.active = true;
    const pressed = this.#button.press();
    this.#onChange();
    try {
      const recording = await pressed;
      this.#begins(recording);
      return recording;
    } catch (error) {
      if (!this.held) this.#ended(); // Otherwise, it was pressed again.
      throw error;
    }
  }

  /** The user releases the button, which also ends what is recorded hands-free. */
  async release() {
    const complete = this.held ? this.#button.release() : this.#recording?.stop();
    this.#ended();
    await complete;
  }

  /** Discard what is being recorded. */
  discard() {
    const recording = this.#recording;
    this.#ended();
    recording?.cancel();
  }

  async startHandsFree() {
    await this.#handsFree.start();
    this.#onChange();
  }

  stopHandsFree() {
    this.#handsFree.stop();
    this.#onChange();
  }

  #begins(recording) {
    this.#recording = recording;
    [this.active, this.heard] = [true, true];
    recording.ended.then(() => this.#recording === recording && this.#ended());
    this.#onChange();
  }

  #ended() {
    this.#recording = null;
    [this.active, this.heard] = [false, false];
    this.#onChange();
  }
}
