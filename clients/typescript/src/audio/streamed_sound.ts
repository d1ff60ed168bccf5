// Plays MP3 while it arrives, through MediaSource. Pieces are whole frames; paragraphs follow each other.

import { Loudness } from "./loudness.js";
import type { Sound, SoundListener } from "./sound.js";

const FALSE_START_MS = 40; // At the start, Chromium's clock advances a little and then stops until the device plays.
const DECODED_RATE = 8_000; // enough for the loudness

/** iPhones have `ManagedMediaSource` only. */
function source(): typeof MediaSource | undefined {
  return globalThis.MediaSource ?? (globalThis as { ManagedMediaSource?: typeof MediaSource }).ManagedMediaSource;
}

/** Return whether this browser can stream audio of that type. */
export function canStream(mimeType: string): boolean {
  return source()?.isTypeSupported(mimeType) ?? false;
}

export class StreamedSound implements Sound {
  readonly #audio: HTMLAudioElement;
  readonly #listener: SoundListener;
  readonly #source = new (source()!)();
  readonly #url: string;
  readonly #waiting: [Uint8Array, number][] = []; // bytes and index, not yet appended to the buffer
  readonly #starts = new Map<number, number>();
  readonly #listeners = new AbortController();
  readonly #loudness = new Loudness();
  #buffer: SourceBuffer | null = null;
  #complete = false;
  #started = false;
  #silentSince: number | null = null;

  constructor(audio: HTMLAudioElement, listener: SoundListener, mimeType: string) {
    this.#audio = audio;
    this.#listener = listener;
    this.#url = URL.createObjectURL(this.#source);
    const once = { once: true, signal: this.#listeners.signal };
    const always = { signal: this.#listeners.signal };
    this.#source.addEventListener("sourceopen", () => this.#open(mimeType), once);
    audio.addEventListener("playing", () => this.#onPlaying(), always);
    audio.addEventListener("waiting", () => this.#onWaiting(), always);
    audio.addEventListener("timeupdate", () => this.#append(), always); // The buffer may have room again.
    audio.addEventListener("ended", () => listener.ended(), once);
    audio.addEventListener("error", () => listener.failed(), once);
    audio.disableRemotePlayback = true; // Otherwise ManagedMediaSource does not open.
    audio.src = this.#url;
    this.resume();
  }

  push(bytes: Uint8Array, index: number): void {
    this.#waiting.push([bytes, index]);
    this.#append();
  }

  end(): void {
    this.#complete = true;
    this.#append();
  }

  stop(): void {
    this.#listeners.abort();
    this.#audio.pause();
    this.#audio.removeAttribute("src");
    this.#audio.load();
    URL.revokeObjectURL(this.#url);
  }

  resume(): void {
    this.#audio.play().catch((error: Error) => {
      if (error.name === "NotAllowedError" && !this.#listeners.signal.aborted) this.#listener.blocked();
    });
  }

  get playedMs(): number {
    const ms = this.#audio.currentTime * 1000;
    return ms < FALSE_START_MS ? 0 : ms;
  }

  get level(): number {
    return this.#loudness.at(this.playedMs);
  }

  startOf(index: number): number | null {
    return this.#starts.get(index) ?? null;
  }

  #open(mimeType: string): void {
    this.#buffer = this.#source.addSourceBuffer(mimeType);
    this.#buffer.addEventListener("updateend", () => this.#append(), { signal: this.#listeners.signal });
    this.#append();
  }

  #append(): void {
    if (this.#buffer === null || this.#buffer.updating || this.#source.readyState !== "open") return;
    const next = this.#waiting[0];
    if (next) this.#appendPiece(this.#buffer, ...next);
    else if (this.#complete && this.#buffer.buffered.length > 0) this.#source.endOfStream();
    else if (this.#complete) this.#listener.ended(); // Without any frame, endOfStream would be an error.
  }

  #appendPiece(buffer: SourceBuffer, bytes: Uint8Array, index: number): void {
    const fromMs = bufferedMs(buffer);
    if (!this.#starts.has(index)) this.#starts.set(index, fromMs);
    try {
      buffer.appendBuffer(bytes as Uint8Array<ArrayBuffer>);
      this.#waiting.shift();
      void this.#measure(bytes, fromMs);
    } catch (error) {
      if ((error as Error).name !== "QuotaExceededError") this.#listener.failed();
    }
  }

  /** Decode a piece once more for its loudness, because the sound of a media element cannot be read everywhere. */
  async #measure(bytes: Uint8Array, fromMs: number): Promise<void> {
    try {
      const decoder = new OfflineAudioContext(1, 1, DECODED_RATE);
      const decoded = await decoder.decodeAudioData(bytes.slice().buffer);
      this.#loudness.add(decoded.getChannelData(0), decoded.sampleRate, fromMs);
    } catch {
      // It is played all the same.
    }
  }

  #onPlaying(): void {
    if (this.#silentSince !== null) this.#listener.gap(this.playedMs, performance.now() - this.#silentSince);
    this.#silentSince = null;
    this.#started = true;
    this.#listener.playing();
  }

  #onWaiting(): void {
    if (this.#started) this.#silentSince ??= performance.now();
    this.#listener.late();
  }
}

function bufferedMs({ buffered }: SourceBuffer): number {
  return buffered.length > 0 ? buffered.end(buffered.length - 1) * 1000 : 0;
}
