// A spoken conversation in a browser: it records the user, plays the answers, and lets the user interrupt them.

import type { ParleyClient } from "../client.js";
import type { ConversationEvent } from "../streams/events.js";
import type { ConverseOptions, Turn } from "../streams/turn.js";
import { MicrophoneFault } from "./faults.js";
import { HandsFree } from "./hands_free.js";
import { HoldToTalk } from "./hold_to_talk.js";
import { Microphone } from "./microphone.js";
import { Player } from "./player.js";
import type { Recording } from "./recording.js";
import type { VoiceDetector } from "./voice_detector.js";

/** `listening`: the user is recorded. `thinking`: the answer is awaited, or has no audio. `speaking`: it is played. */
export type VoiceState = "idle" | "listening" | "thinking" | "speaking";

export interface VoiceChatOptions {
  client: ParleyClient;
  /** Those of each turn. They are read when a turn begins. */
  options: Omit<ConverseOptions, "text" | "audio" | "turnDetection" | "conversationId" | "idempotencyKey" | "signal">;
  /** The conversation to continue. */
  conversationId?: string | null;
  microphone?: Microphone;
  player?: Player;
  /** The pause that ends an utterance without hands, in milliseconds. */
  pauseMs?: number;
  /** Makes the detector of voices. By default, it is Silero's. */
  loadDetector?: () => Promise<VoiceDetector>;
  /** Called when a turn begins. If its recording is canceled, it has no events. */
  onTurn?: (turn: Turn) => void;
  /** Called with each event, also of a turn that was interrupted. */
  onEvent?: (event: ConversationEvent, turn: Turn) => void;
  onState?: (state: VoiceState) => void;
  /**
   * Called with a `ParleyError`, such as a `MicrophoneFault`, or with what a function of the app has thrown. By default,
   * it is reported as an uncaught error.
   */
  onError?: (error: Error) => void;
}

export class VoiceChat {
  readonly microphone: Microphone;
  readonly player: Player;
  readonly #given: VoiceChatOptions;
  readonly #button: HoldToTalk;
  readonly #handsFree: HandsFree;
  #conversationId: string | null;
  #recording: Recording | null = null;
  #turn: Turn | null = null; // until it has ended and has been played
  #answering = false; // whether events of that turn are still to come
  #input: Recording | null = null; // of that turn
  #spoken = false; // whether audio of that turn has arrived
  #interrupted: Promise<void> = Promise.resolve();
  #state: VoiceState = "idle";

  constructor(given: VoiceChatOptions) {
    this.#given = given;
    this.#conversationId = given.conversationId ?? null;
    this.microphone = given.microphone ?? new Microphone();
    this.#button = new HoldToTalk(this.microphone);
    this.player = given.player ?? new Player();
    this.player.watch(() => this.#changed());
    this.#handsFree = new HandsFree({
      microphone: this.microphone,
      player: this.player,
      ...(given.pauseMs !== undefined && { pauseMs: given.pauseMs }),
      ...(given.loadDetector && { loadDetector: given.loadDetector }),
      onUtterance: (recording) => {
        void this.interrupt();
        void this.#listen(recording);
      },
      onLost: () => this.#report(new MicrophoneFault("lost")),
    });
  }

  get state(): VoiceState {
    return this.#state;
  }

  /** Whether it listens by itself. */
  get handsFree(): boolean {
    return this.#handsFree.on;
  }

  /** Null until the first answer has begun. */
  get conversationId(): string | null {
    return this.#conversationId;
  }

  /** The user says something in writing. Resolves when the answer is complete. */
  say(text: string): Promise<void> {
    return this.#converse({ text });
  }

  /** Record the user until `release` is called. This interrupts the answer. */
  async hold(): Promise<void> {
    if (this.#button.held || this.microphone.recording) return;
    void this.interrupt();
    try {
      void this.#listen(await this.#button.press());
    } catch (error) {
      this.#report(error);
    }
  }

  /** The user has finished speaking. */
  release(): Promise<void> {
    return this.#button.release();
  }

  /** Listen by itself: the user speaks at any time, and a pause ends the turn. */
  async startHandsFree(): Promise<void> {
    try {
      await this.#handsFree.start();
    } catch (error) {
      this.#report(error);
    }
  }

  stopHandsFree(): void {
    this.#handsFree.stop();
  }

  /**
   * Stop the answer, or the recording that it would answer. The history keeps what was heard. When this resolves, the
   * next turn may begin.
   */
  interrupt(): Promise<void> {
    const turn = this.#turn;
    if (turn === null) return this.#interrupted;
    if (this.#input !== null && this.#input === this.#recording) {
      this.#input.cancel();
      return this.#interrupted;
    }
    const heardMs = this.player.stop();
    this.#turn = null;
    this.#answering = false;
    this.#interrupted = turn.interrupt({ heardMs: this.#spoken ? heardMs : null }).catch((error) => this.#report(error));
    this.#changed();
    return this.#interrupted;
  }

  /** Stop everything, and close the microphone and the player. */
  async close(): Promise<void> {
    this.#recording?.cancel();
    void this.#button.release();
    this.#handsFree.stop();
    await Promise.all([this.interrupt(), this.microphone.close()]);
    this.player.close();
  }

  async #listen(recording: Recording): Promise<void> {
    this.#recording = recording;
    void recording.ended.then(() => {
      if (this.#recording === recording) this.#recording = null;
      this.#changed();
    });
    this.#changed();
    try {
      for await (const _ of recording) break; // A recording that is too short begins no turn.
      await this.#converse({ audio: recording });
    } catch (error) {
      if (!isCanceled(error)) this.#report(error);
    }
  }

  async #converse(input: { text: string } | { audio: Recording }): Promise<void> {
    await this.interrupt();
    const { client, options, onTurn, onEvent } = this.#given;
    const turn = client.converse({ ...options, ...input, conversationId: this.#conversationId });
    this.#turn = turn;
    this.#input = "audio" in input ? input.audio : null;
    this.#answering = true;
    this.#spoken = false;
    this.#changed();
    onTurn?.(turn);
    try {
      for await (const event of turn) {
        this.#apply(event, turn);
        onEvent?.(event, turn);
      }
    } catch (error) {
      if (!isCanceled(error)) this.#report(error);
    } finally {
      if (this.#turn === turn) {
        this.#answering = false;
        this.player.end();
      }
      this.#changed();
    }
  }

  #apply(event: ConversationEvent, turn: Turn): void {
    const stored = event.name === "end" ? event.content.record_id !== null : event.name.startsWith("assistant_output");
    if (stored) this.#conversationId = turn.conversationId;
    if (this.#turn !== turn) return; // The user has interrupted it.
    if (event.name === "assistant_output_audio_chunk") this.#spoken = true;
    this.player.push(event);
    this.#changed();
  }

  #changed(): void {
    if (!this.#answering && !this.player.playing) this.#turn = null;
    const state = this.#stateNow();
    if (state === this.#state) return;
    this.#state = state;
    this.#given.onState?.(state);
  }

  #stateNow(): VoiceState {
    if (this.#recording) return "listening";
    if (this.#turn === null) return "idle";
    return this.player.playing ? "speaking" : "thinking";
  }

  #report(error: unknown): void {
    const { onError = reportError } = this.#given;
    onError(error instanceof Error ? error : new Error(String(error), { cause: error }));
  }
}

function isCanceled(error: unknown): boolean {
  return error instanceof MicrophoneFault && error.kind === "canceled";
}
