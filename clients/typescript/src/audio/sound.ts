// What all ways to play the audio of an answer have in common.

/** One answer's audio while it arrives and plays. */
export interface Sound {
  /** Add bytes of paragraph `index`, in order. */
  push(bytes: Uint8Array, index: number): void;
  /** Note that all audio has arrived. The rest is played. */
  end(): void;
  /** Stop immediately. */
  stop(): void;
  /** Play, or try again after the browser has blocked it. */
  resume(): void;
  /** Milliseconds that were played. */
  readonly playedMs: number;
  /** The loudness at this moment, from 0 to 1. */
  readonly level: number;
  /** The start of paragraph `index` in milliseconds of audio, or null if it has not arrived. */
  startOf(index: number): number | null;
}

export interface SoundListener {
  playing(): void;
  /** The audio that has arrived is over, and more is awaited. */
  late(): void;
  /** The browser plays nothing until the user touches the page. */
  blocked(): void;
  ended(): void;
  failed(): void;
  /** Nothing was played for `ms` at the position `atMs`, because audio arrived late. */
  gap(atMs: number, ms: number): void;
}
