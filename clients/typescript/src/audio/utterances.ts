// Groups frames with and without a voice to utterances.

const WINDOW_MS = 300;
const BEGINS = 0.6; // the share of the window in which there must be a voice
const BEGINS_OVER_ANSWER = 1; // The microphone also hears some of the answer.
const PAUSE_MS = 810;

export type UtteranceChange = "began" | "ended";

export interface UtterancesOptions {
  /** The duration of a frame. */
  frameMs: number;
  /** This long without a voice ends an utterance. */
  pauseMs?: number;
}

export class Utterances {
  readonly #frames: number; // of the window
  readonly #pauseFrames: number;
  #window: boolean[] = [];
  #silent = 0;
  #speaking = false;

  constructor({ frameMs, pauseMs = PAUSE_MS }: UtterancesOptions) {
    this.#frames = Math.round(WINDOW_MS / frameMs);
    this.#pauseFrames = Math.ceil(pauseMs / frameMs);
  }

  /** Add a frame. Return the change that it makes, if it makes one. */
  push(voiced: boolean, { overAnswer = false }: { overAnswer?: boolean } = {}): UtteranceChange | null {
    this.#window.push(voiced);
    if (this.#window.length > this.#frames) this.#window.shift();
    this.#silent = voiced ? 0 : this.#silent + 1;
    return this.#speaking ? this.#endsNow() : this.#beginsNow(overAnswer ? BEGINS_OVER_ANSWER : BEGINS);
  }

  #beginsNow(share: number): UtteranceChange | null {
    if (this.#window.filter(Boolean).length < Math.round(share * this.#frames)) return null;
    this.#speaking = true;
    return "began";
  }

  #endsNow(): UtteranceChange | null {
    if (this.#silent < this.#pauseFrames) return null;
    this.#speaking = false;
    this.#window = [];
    return "ended";
  }
}
