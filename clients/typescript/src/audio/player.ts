// Plays the audio of an answer while it arrives, and reports how much of it was heard.

import type { AudioChunkContent } from "../api.js";
import type { ConversationEvent, SpeechEvent } from "../streams/events.js";
import { DecodedSound } from "./decoded_sound.js";
import type { Sound } from "./sound.js";
import { canStream, StreamedSound } from "./streamed_sound.js";
import { WavSound } from "./wav_sound.js";

const GAP_MS = 50; // Shorter gaps are not audible.
const RATE = 24_000; // for formats that do not say theirs
const GESTURES = ["keydown", "mousedown", "pointerup", "touchend"]; // After one of these, browsers allow audio.

/** `waiting`: for audio. `blocked`: by the browser, until the user touches the page or presses a key. */
export type PlayerState = "idle" | "waiting" | "playing" | "blocked" | "failed";

export interface Gap {
  atMs: number;
  ms: number;
}

export interface PlayerOptions {
  onState?: (state: PlayerState) => void;
}

/** Plays one answer at a time: `push` its events, and `stop` at any time. */
export class Player {
  readonly #watchers = new Set<(state: PlayerState) => void>();
  readonly #audio = new Audio();
  readonly #closing = new AbortController();
  #sound: Sound | null = null;
  #arriving: string | null = null; // the format of the answer whose audio is arriving
  #stopped = false; // whether the rest of the answer is not wanted
  #state: PlayerState = "idle";
  #heardMs = 0; // of the last answer
  #gaps: Gap[] = [];

  constructor({ onState }: PlayerOptions = {}) {
    if (onState) this.watch(onState);
    const always = { capture: true, signal: this.#closing.signal };
    for (const gesture of GESTURES) document.addEventListener(gesture, () => this.#unlock(), always);
  }

  /** Call `watcher` with each new state, until the function that is returned is called. */
  watch(watcher: (state: PlayerState) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Play what an event of a turn or of a speech brings. Others than those with audio may be given as well. */
  push(event: ConversationEvent | SpeechEvent): void {
    switch (event.name) {
      case "start":
        this.begin();
        break;
      case "assistant_output_audio_chunk":
        this.#add(event.content, event.bytes, event.content.index);
        break;
      case "audio_chunk":
        this.#add(event.content, event.bytes, 0);
        break;
      case "assistant_output_restart":
        if (!this.#stopped) this.begin();
        break;
      case "end":
        this.end();
        break;
    }
  }

  /** Stop the answer that is played. Another one begins. */
  begin(): void {
    this.stop();
    this.#stopped = false;
    this.#heardMs = 0;
  }

  /** Note that all audio of the answer has arrived. The rest is played. */
  end(): void {
    if (this.#arriving !== null) this.#sound?.end();
    this.#arriving = null;
  }

  /**
   * Stop immediately, and ignore events until the next answer begins. Return `heardMs`, or null if the user could not hear
   * the answer: the browser cannot play it, or did not before the user touched the page.
   */
  stop(): number | null {
    const unheard = this.#state === "failed" || (this.#state === "blocked" && this.heardMs === 0);
    this.#stopped = true;
    this.#arriving = null;
    this.#finish("idle");
    return unheard ? null : this.heardMs;
  }

  /** Stop, and no longer wait for the user to touch the page. */
  close(): void {
    this.stop();
    this.#closing.abort();
    this.#watchers.clear();
  }

  get state(): PlayerState {
    return this.#state;
  }

  /** Whether an answer is played, or waits for its audio. */
  get playing(): boolean {
    return this.#sound !== null;
  }

  /** Milliseconds of the answer's audio that were heard. The value is kept until the next answer begins. */
  get heardMs(): number {
    return Math.round(this.#sound?.playedMs ?? this.#heardMs);
  }

  /** The loudness of what is heard at this moment, from 0 to 1. */
  get level(): number {
    return this.#state === "playing" ? (this.#sound?.level ?? 0) : 0;
  }

  /** Return the start of paragraph `index` in milliseconds of audio, or null if it has not arrived. */
  startOf(index: number): number | null {
    const startMs = this.#sound?.startOf(index) ?? null;
    return startMs === null ? null : Math.round(startMs);
  }

  /** Audible gaps in the answer because audio arrived late. */
  get gaps(): Gap[] {
    return [...this.#gaps];
  }

  #add(format: AudioChunkContent, bytes: Uint8Array, index: number): void {
    if (this.#stopped) return;
    if (format.mime_type) this.#open(format.mime_type, format.sample_rate ?? RATE);
    if (this.#arriving !== null) this.#sound?.push(bytes, index);
  }

  /** Each paragraph states the format. That of the first one opens the sound. */
  #open(mimeType: string, sampleRate: number): void {
    const format = `${mimeType} ${sampleRate}`;
    if (this.#arriving === format) return;
    this.#finish("idle");
    this.#arriving = format;
    this.#gaps = [];
    this.#heardMs = 0;
    this.#setState("waiting");
    this.#sound = this.#soundOf(mimeType, sampleRate);
  }

  #soundOf(mimeType: string, sampleRate: number): Sound {
    const listener = {
      playing: () => this.#setState("playing"),
      late: () => this.#setState("waiting"),
      blocked: () => this.#setState("blocked"),
      ended: () => this.#finish("idle"),
      failed: () => this.#finish("failed"),
      gap: (atMs: number, ms: number) => {
        if (ms > GAP_MS) this.#gaps.push({ atMs: Math.round(atMs), ms: Math.round(ms) });
      },
    };
    if (mimeType === "audio/wav") return new WavSound(sampleRate, listener);
    if (canStream(mimeType)) return new StreamedSound(this.#audio, listener, mimeType);
    return new DecodedSound(sampleRate, listener);
  }

  #finish(state: PlayerState): void {
    const sound = this.#sound;
    if (sound === null) return;
    this.#heardMs = sound.playedMs;
    this.#sound = null;
    sound.stop();
    this.#setState(state);
  }

  #setState(state: PlayerState): void {
    if (this.#state === state) return;
    this.#state = state;
    for (const watcher of [...this.#watchers]) watcher(state);
  }

  #unlock(): void {
    if (this.#sound === null) this.#audio.load(); // Some browsers unlock an element only by a call within a gesture.
    else this.#sound.resume();
  }
}
