// The microphone, in the format that the server accepts: 16 kHz, mono, 16 bits.

import { MicrophoneFault } from "./faults.js";
import { PIECE_SAMPLES, RATE, SEE_BUNDLERS } from "./format.js";
import { Recording, type RecordingEnd } from "./recording.js";

const KEEP_OPEN_MS = 15_000; // Opening takes so long that the first word would be lost.
const FLUSH_MS = 500; // maximum wait for the last samples
const PIECE_MS = (1000 * PIECE_SAMPLES) / RATE;
const HEARD_PIECES = 14; // about a second

export interface MicrophoneOptions {
  /** Whether the browser removes what its loudspeaker plays. */
  echoCancellation?: boolean;
  noiseSuppression?: boolean;
  autoGainControl?: boolean;
  /** Called with the volume, from 0 to 1, about 13 times a second while the microphone is used. */
  onLevel?: (level: number) => void;
  /** How long the microphone stays open after its last use, in milliseconds. */
  keepOpenMs?: number;
  /** The address of `worklet.js` of this package, for build tools that do not find it. */
  workletUrl?: string | URL;
}

/** Called with samples at 16 kHz. */
export type SampleListener = (samples: Int16Array) => void;

export interface RecordOptions {
  /** If less than this is recorded, reading the recording throws a `MicrophoneFault` `short`. */
  minSeconds?: number;
  /** The recording ends by itself after this time. */
  maxSeconds?: number;
  /** How much of what was heard before it begins with, in milliseconds. Only while the microphone listens. */
  beforeMs?: number;
}

interface Open {
  stream: MediaStream;
  context: AudioContext;
  node: AudioWorkletNode;
}

export class Microphone {
  readonly #options: MicrophoneOptions;
  #open: Promise<Open> | null = null;
  #opened: Open | null = null;
  #closing: ReturnType<typeof setTimeout> | undefined;
  #recording: Recording | null = null;
  #level = 0;
  #onFlushed: () => void = () => {};
  readonly #listeners = new Map<SampleListener, () => void>(); // what is called with samples, and when they end
  #heard: Uint8Array[] = []; // the last pieces, while somebody listens

  constructor(options: MicrophoneOptions = {}) {
    this.#options = options;
  }

  /** The volume from 0 to 1 while the microphone is used. */
  get level(): number {
    return this.#level;
  }

  /** The recording that is being made, if there is one. */
  get recording(): Recording | null {
    return this.#recording;
  }

  /** Open the microphone, after asking the user for permission if necessary. Throws `MicrophoneFault`. */
  async open(): Promise<void> {
    clearTimeout(this.#closing);
    const open = (this.#open ??= this.#openDevice());
    try {
      const opened = await open;
      await opened.context.resume();
      this.#opened = opened;
      this.#closeLater();
    } catch (error) {
      if (this.#open === open) this.#open = null;
      throw MicrophoneFault.of(error);
    }
  }

  /** Start a recording. The microphone must be open, and there is one recording at a time. */
  record({ minSeconds = 0, maxSeconds = Infinity, beforeMs = 0 }: RecordOptions = {}): Recording {
    const { node } = this.#openedNow();
    if (this.#recording) throw new Error("the microphone is recording already");
    clearTimeout(this.#closing);
    const before = beforeMs > 0 ? this.#heard.slice(-Math.ceil(beforeMs / PIECE_MS)) : [];
    const source = { flush: () => this.#flush(node), release: () => this.#released() };
    this.#recording = new Recording(source, before, { minSeconds, maxSeconds });
    return this.#recording;
  }

  /**
   * Call `listener` with all that the microphone hears, until the function that is returned is called. `onLost` is
   * called if the microphone is closed or unplugged.
   */
  listen(listener: SampleListener, onLost: () => void = () => {}): () => void {
    this.#openedNow();
    clearTimeout(this.#closing);
    this.#listeners.set(listener, onLost);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#heard = [];
      this.#unused();
    };
  }

  /** Close the microphone now. The recording ends. */
  close(): Promise<void> {
    return this.#close("stopped");
  }

  async #close(end: RecordingEnd): Promise<void> {
    clearTimeout(this.#closing);
    const [open, losers] = [this.#open, [...this.#listeners.values()]];
    this.#open = null;
    this.#opened = null;
    this.#listeners.clear();
    this.#heard = [];
    this.#recording?.finish(end);
    for (const onLost of losers) onLost();
    this.#setLevel(0);
    if (open === null) return;
    const { stream, context } = await open;
    for (const track of stream.getTracks()) track.stop();
    await context.close();
  }

  #openedNow(): Open {
    if (this.#opened === null) throw new Error("the microphone is not open: await open() first");
    return this.#opened;
  }

  async #openDevice(): Promise<Open> {
    if (!navigator.mediaDevices) throw new MicrophoneFault("insecure");
    const { echoCancellation = true, noiseSuppression = true, autoGainControl = true } = this.#options;
    const stream = await navigator.mediaDevices.getUserMedia({
      audio: { channelCount: 1, echoCancellation, noiseSuppression, autoGainControl },
    });
    const context = new AudioContext(); // At the device's own rate, because not every browser converts it.
    try {
      const { workletUrl = new URL("./worklet.js", import.meta.url) } = this.#options;
      await context.audioWorklet.addModule(workletUrl).catch((cause) => {
        const from = String(workletUrl).slice(0, 100); // It may contain the code.
        throw new Error(`worklet.js cannot be loaded from ${from}; ${SEE_BUNDLERS}`, { cause });
      });
    } catch (error) {
      for (const track of stream.getTracks()) track.stop();
      await context.close();
      throw error;
    }
    for (const track of stream.getTracks()) track.addEventListener("ended", () => void this.#close("lost"));
    const node = new AudioWorkletNode(context, "pcm", { numberOfOutputs: 0, processorOptions: { rate: RATE } });
    node.port.onmessage = ({ data }) => this.#onData(data.samples, data.level);
    context.createMediaStreamSource(stream).connect(node);
    return { stream, context, node };
  }

  #onData(samples: Int16Array | null, level: number): void {
    if (samples === null) {
      this.#onFlushed();
      return;
    }
    if (this.#recording === null && this.#listeners.size === 0) return;
    this.#setLevel(level);
    const piece = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
    if (this.#recording) this.#recording.add(piece);
    // A shorter piece ends a recording: it is no multiple of 3 bytes.
    if (this.#listeners.size > 0 && samples.length === PIECE_SAMPLES) {
      this.#heard = [...this.#heard, piece].slice(-HEARD_PIECES);
    }
    for (const listener of [...this.#listeners.keys()]) listener(samples);
  }

  async #flush(node: AudioWorkletNode): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      this.#onFlushed = resolve;
      timer = setTimeout(resolve, FLUSH_MS);
      node.port.postMessage("flush");
    });
    clearTimeout(timer);
  }

  #released(): void {
    this.#recording = null;
    this.#unused();
  }

  /** Close the microphone after a while if nobody uses it. */
  #unused(): void {
    if (this.#recording || this.#listeners.size > 0) return;
    this.#setLevel(0);
    this.#closeLater();
  }

  #closeLater(): void {
    clearTimeout(this.#closing);
    if (this.#open === null || this.#recording || this.#listeners.size > 0) return;
    this.#closing = setTimeout(() => void this.close(), this.#options.keepOpenMs ?? KEEP_OPEN_MS);
  }

  #setLevel(level: number): void {
    if (level === this.#level) return;
    this.#level = level;
    this.#options.onLevel?.(level);
  }
}
