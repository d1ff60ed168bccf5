// Conversation without hands: an utterance begins when the user speaks, and a pause ends it.

import { LONGEST_S, RATE } from "./format.js";
import { Frames } from "./frames.js";
import type { Microphone } from "./microphone.js";
import { NearVoice } from "./near_voice.js";
import type { Player } from "./player.js";
import type { Recording } from "./recording.js";
import { Utterances, type UtteranceChange } from "./utterances.js";
import { SileroVoiceDetector, type VoiceDetector } from "./voice_detector.js";

const BEFORE_MS = 525; // A voice is only recognized as one after some time.

export interface HandsFreeOptions {
  microphone: Microphone;
  /** Plays the answers. While it plays, only a near voice begins an utterance. */
  player: Player;
  /**
   * Called when the user begins to speak. The recording goes on until the user pauses. Nothing is interrupted by itself:
   * stop the player and interrupt the turn here, also one whose answer is not played yet.
   */
  onUtterance: (recording: Recording) => void;
  /** Called if the microphone was closed or unplugged, which ends the mode. */
  onLost?: () => void;
  /** The pause that ends an utterance, in milliseconds. */
  pauseMs?: number;
  /** An utterance ends after this time even without a pause. */
  maxSeconds?: number;
  /** Makes the detector. By default, it is Silero's. */
  loadDetector?: () => Promise<VoiceDetector>;
}

export class HandsFree {
  readonly #options: HandsFreeOptions;
  #on: { stop: () => void } | null = null;
  #recording: Recording | null = null; // of the utterance

  constructor(options: HandsFreeOptions) {
    this.#options = options;
  }

  get on(): boolean {
    return this.#on !== null;
  }

  /** Open the microphone, and listen until `stop` is called. Throws `MicrophoneFault`. */
  async start(): Promise<void> {
    if (this.#on) return;
    const { microphone, pauseMs, loadDetector = () => SileroVoiceDetector.load(), onLost } = this.#options;
    const on = { stop: () => {} };
    this.#on = on;
    try {
      const [detector] = await Promise.all([loadDetector(), microphone.open()]);
      await microphone.open(); // It closes while nobody uses it, and loading can take longer.
      if (this.#on !== on) return detector.free(); // It was stopped meanwhile.
      const frames = new Frames(detector.frameSamples);
      const frameMs = (1000 * detector.frameSamples) / RATE;
      const utterances = new Utterances({ frameMs, ...(pauseMs !== undefined && { pauseMs }) });
      const near = new NearVoice();
      const hear = (samples: Int16Array) => {
        for (const frame of frames.push(samples)) {
          const overAnswer = this.#options.player.playing;
          const loud = near.push(frame, { overAnswer });
          const voiced = detector.isVoice(frame); // It hears all frames, loud or not.
          this.#change(utterances.push(voiced && loud, { overAnswer }));
        }
      };
      const lost = () => {
        this.stop();
        onLost?.();
      };
      const ignore = microphone.listen(hear, lost);
      on.stop = () => {
        ignore();
        detector.free();
      };
    } catch (error) {
      if (this.#on === on) this.#on = null;
      throw error;
    }
  }

  /** Stop listening. An utterance that is being recorded ends here. */
  stop(): void {
    const on = this.#on;
    this.#on = null;
    on?.stop();
    void this.#recording?.stop();
    this.#recording = null;
  }

  #change(change: UtteranceChange | null): void {
    if (this.#on === null) return;
    if (change === "began") this.#begin();
    else if (change === "ended") this.#end();
  }

  #begin(): void {
    const { microphone, onUtterance, maxSeconds = LONGEST_S } = this.#options;
    if (microphone.recording) return; // The user is recorded already, for example while a button is held.
    this.#recording = microphone.record({ maxSeconds, beforeMs: BEFORE_MS });
    onUtterance(this.#recording);
  }

  #end(): void {
    void this.#recording?.stop();
    this.#recording = null;
  }
}
