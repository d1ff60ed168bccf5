// Records the microphone in the format that the server accepts: 16 kHz, mono, 16 bits, in base64.

import { delay } from "./backoff.js";

const KEEP_OPEN_MS = 15_000; // Opening takes so long that the first word would be lost.
const FLUSH_MS = 500; // maximum wait for the last samples
const RATE = 16_000;
const BLOCK = 1_200; // samples that the worklet sends at once
const HEARD_BLOCKS = 7; // 525 ms
const KINDS = {
  NotAllowedError: "refused",
  SecurityError: "refused",
  NotFoundError: "missing",
  OverconstrainedError: "missing",
  NotReadableError: "busy",
};

/** Why there is no recording: `kind` is "insecure", "refused", "missing", "busy", "failed", "short" or "early". */
export class MicrophoneFault extends Error {
  constructor(kind, cause) {
    super(`microphone: ${kind}`, { cause });
    this.kind = kind;
  }
}

export class Microphone {
  #open = null; // a promise of {stream, context, node}
  #closing = null;
  #recorded = null; // pieces of base64 since `start`
  #samples = 0;
  #onFlushed = null;
  #request = 0; // counts calls of `start`, `stop` and `cancel`, to detect one that happens while the microphone opens
  #onLevel;
  #onPiece = null;
  #onSamples = null; // while somebody listens, also if nothing is recorded
  #heard = []; // the last pieces of base64 before a recording, while somebody listens

  /** `onLevel` is called with the volume, from 0 to 1, about ten times a second. */
  constructor({ onLevel = () => {} } = {}) {
    this.#onLevel = onLevel;
  }

  /**
   * Start recording, after asking the user for permission if necessary. `onPiece` is called with each piece of base64.
   * Return false if it was stopped before the microphone was open.
   */
  async start({ onPiece = null } = {}) {
    this.#request += 1;
    const request = this.#request;
    await this.#ready();
    if (request !== this.#request) return false;
    this.#onPiece = onPiece;
    [this.#recorded, this.#heard] = [this.#heard, []];
    this.#samples = this.#recorded.length * BLOCK;
    return true;
  }

  /**
   * Keep the microphone open and call `onSamples` with all that it hears, until `ignore` is called. Recordings then
   * begin with the half second before their start, because a voice is only recognized as one after some time.
   */
  async listen(onSamples) {
    await this.#ready();
    this.#onSamples = onSamples;
  }

  ignore() {
    [this.#onSamples, this.#heard] = [null, []];
    if (this.#recorded === null) this.cancel();
  }

  /** What is recorded so far, in base64. */
  get recorded() {
    return this.#recorded.join("");
  }

  async #ready() {
    clearTimeout(this.#closing);
    this.#open ??= this.#opened();
    try {
      const { context } = await this.#open;
      await context.resume();
    } catch (error) {
      this.#open = null;
      throw error instanceof MicrophoneFault ? error : new MicrophoneFault(KINDS[error.name] ?? "failed", error);
    }
  }

  /** Stop, and return the recording since `start`. Pieces are multiples of 3 bytes, so their base64 can be joined. */
  async stop() {
    this.#request += 1;
    if (this.#recorded === null) return { base64: "", seconds: 0 };
    const { node } = await this.#open;
    const flushed = new Promise((resolve) => (this.#onFlushed = resolve));
    node.port.postMessage("flush");
    await Promise.race([flushed, delay(FLUSH_MS)]);
    const recording = { base64: this.#recorded.join(""), seconds: this.#samples / RATE };
    this.cancel();
    return recording;
  }

  /** Stop and discard the recording. The microphone stays open for a while. */
  cancel() {
    this.#request += 1;
    [this.#recorded, this.#onPiece] = [null, null];
    this.#onLevel(0);
    clearTimeout(this.#closing);
    if (this.#open !== null && this.#onSamples === null) this.#closing = setTimeout(() => this.#close(), KEEP_OPEN_MS);
  }

  #onData(samples, level) {
    if (samples === null) {
      this.#onFlushed?.();
      this.#onFlushed = null;
      return;
    }
    if (this.#recorded === null && this.#onSamples === null) return;
    const piece = base64(new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength));
    if (this.#recorded !== null) {
      this.#recorded.push(piece);
      this.#samples += samples.length;
      this.#onLevel(level);
      this.#onPiece?.(piece);
    } else if (samples.length === BLOCK) {
      this.#heard = [...this.#heard, piece].slice(-HEARD_BLOCKS);
    }
    this.#onSamples?.(samples);
  }

  async #opened() {
    if (!navigator.mediaDevices) throw new MicrophoneFault("insecure");
    const stream = await navigator.mediaDevices.getUserMedia({
      audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true },
    });
    for (const track of stream.getTracks()) track.addEventListener("ended", () => (this.#open = null));
    const context = new AudioContext(); // At the device's own rate, because not every browser converts it.
    await context.audioWorklet.addModule(new URL("worklet.js", import.meta.url));
    const node = new AudioWorkletNode(context, "pcm", { numberOfOutputs: 0, processorOptions: { rate: RATE } });
    node.port.onmessage = ({ data }) => this.#onData(data.samples, data.level);
    context.createMediaStreamSource(stream).connect(node);
    return { stream, context, node };
  }

  async #close() {
    const { stream, context } = await this.#open;
    this.#open = null;
    for (const track of stream.getTracks()) track.stop();
    await context.close();
  }
}

const base64 = (bytes) => btoa(String.fromCharCode(...bytes));
