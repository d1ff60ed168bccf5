// What the microphone hears, as the server takes it: 16 kHz, mono, 16 bits, in base64.

import { pause } from "./patience.js";

const KEEP_OPEN_MS = 15_000; // opening takes long enough to lose a first word
const FLUSH_MS = 500; // at most, for the last samples
const RATE = 16_000;
const KINDS = {
  NotAllowedError: "refused",
  SecurityError: "refused",
  NotFoundError: "missing",
  OverconstrainedError: "missing",
  NotReadableError: "busy",
};

/** Why there is nothing to hear: `kind` is "insecure", "refused", "missing", "busy" or "failed". */
export class MicrophoneFault extends Error {
  constructor(kind, cause) {
    super(`microphone: ${kind}`, { cause });
    this.kind = kind;
  }
}

export class Microphone {
  #open = null; // a promise of {stream, context, node}
  #closing = null;
  #heard = null; // pieces of base64 since `start`
  #samples = 0;
  #whole = null;
  #wish = 0; // counts what the user asked for: opening may take until that is something else
  #onLevel;
  #onPiece = null;

  /** `onLevel` is told how loud it is, from 0 to 1, some ten times a second. */
  constructor({ onLevel = () => {} } = {}) {
    this.#onLevel = onLevel;
  }

  /**
   * Listen from now on; ask the user to allow it, if need be. `onPiece` gets each piece of base64 as it comes.
   * False: it was stopped before it was open.
   */
  async start({ onPiece = null } = {}) {
    this.#wish += 1;
    const wish = this.#wish;
    clearTimeout(this.#closing);
    this.#open ??= this.#opened();
    try {
      const { context } = await this.#open;
      await context.resume();
    } catch (error) {
      this.#open = null;
      throw error instanceof MicrophoneFault ? error : new MicrophoneFault(KINDS[error.name] ?? "failed", error);
    }
    if (wish !== this.#wish) return false;
    this.#onPiece = onPiece;
    [this.#heard, this.#samples] = [[], 0];
    return true;
  }

  /** All that was heard since `start`. The pieces are cut at multiples of 3 bytes, so they join to one base64. */
  async stop() {
    this.#wish += 1;
    if (this.#heard === null) return { base64: "", seconds: 0 };
    const { node } = await this.#open;
    const whole = new Promise((resolve) => (this.#whole = resolve));
    node.port.postMessage("flush");
    await Promise.race([whole, pause(FLUSH_MS)]);
    const heard = { base64: this.#heard.join(""), seconds: this.#samples / RATE };
    this.cancel();
    return heard;
  }

  /** Listen no more, and forget what was heard. */
  cancel() {
    this.#wish += 1;
    [this.#heard, this.#onPiece] = [null, null];
    this.#onLevel(0);
    clearTimeout(this.#closing);
    if (this.#open !== null) this.#closing = setTimeout(() => this.#close(), KEEP_OPEN_MS);
  }

  #take(samples, level) {
    if (samples === null) {
      this.#whole?.();
      this.#whole = null;
    } else if (this.#heard !== null) {
      const piece = base64(new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength));
      this.#heard.push(piece);
      this.#samples += samples.length;
      this.#onLevel(level);
      this.#onPiece?.(piece);
    }
  }

  async #opened() {
    if (!navigator.mediaDevices) throw new MicrophoneFault("insecure");
    const stream = await navigator.mediaDevices.getUserMedia({
      audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true },
    });
    for (const track of stream.getTracks()) track.addEventListener("ended", () => (this.#open = null));
    const context = new AudioContext(); // at the device's own rate: not every browser converts it
    await context.audioWorklet.addModule(new URL("worklet.js", import.meta.url));
    const node = new AudioWorkletNode(context, "pcm", { numberOfOutputs: 0, processorOptions: { rate: RATE } });
    node.port.onmessage = ({ data }) => this.#take(data.samples, data.level);
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
