// The user's voice: what is recorded while the button is held or, hands-free, while the user speaks.

import { HandsFree, MicrophoneFault } from "../client/parley-client.js";

const SHORTEST_S = 0.3;
const LONGEST_S = 120;

export class Voice {
  /** Whether the button is held, or the user speaks. */
  active = false;
  /** Whether the button is held. */
  held = false;
  /** Whether the microphone is open, and the user is heard. */
  heard = false;
  #microphone;
  #onChange;
  #recording = null;
  #handsFree;

  /**
   * `onInterrupt` is called when the user begins to speak hands-free, and then `onSpeech` with the recording.
   * `onLost` is called if that mode has ended because the microphone is gone.
   */
  constructor({ microphone, player, onSpeech, onInterrupt, onLost, onChange }) {
    this.#microphone = microphone;
    this.#onChange = onChange;
    const onUtterance = (recording) => {
      onInterrupt(); // Also an answer that is not played yet.
      this.#begins(recording);
      onSpeech(recording);
    };
    this.#handsFree = new HandsFree({ microphone, player, onUtterance, onInterrupt, onLost });
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
    [this.active, this.held] = [true, true];
    this.#onChange();
    try {
      await this.#microphone.open();
      if (!this.active) throw new MicrophoneFault("early");
    } catch (error) {
      this.#ended();
      throw error;
    }
    const recording = this.#microphone.record({ maxSeconds: LONGEST_S });
    this.#begins(recording);
    return recording;
  }

  /** The user releases the button. Throws if the recording is too short to be of use. */
  async release() {
    const recording = this.#recording;
    this.#ended();
    if (recording === null) return; // The microphone was not open yet.
    if (recording.seconds < SHORTEST_S) {
      recording.cancel();
      throw new MicrophoneFault("short");
    }
    await recording.stop();
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
    [this.active, this.held, this.heard] = [false, false, false];
    this.#onChange();
  }
}
