// What detects a voice. The one of this package is WebRTC's, compiled to WebAssembly.

import { RATE } from "./format.js";

/** Tells frames of 16 kHz mono audio with a voice from those without. */
export interface VoiceDetector {
  /** The number of samples of a frame. */
  readonly frameSamples: number;
  /** Return whether there is a voice in this frame. Frames are given in order. */
  isVoice(frame: Int16Array): boolean;
  /** Release what it holds. */
  free(): void;
}

const MODE = 3; // the one that takes the fewest sounds for a voice

/** The exports of `fvad.wasm`, whose names its compiler has shortened. */
interface Fvad {
  c: WebAssembly.Memory;
  d(): void; // initialize
  e(): number; // fvad_new
  f(bytes: number): number; // malloc
  h(detector: number): void; // fvad_free
  i(pointer: number): void; // free
  j(detector: number, mode: number): number; // fvad_set_mode
  k(detector: number, rate: number): number; // fvad_set_sample_rate
  l(detector: number, frame: number, samples: number): number; // fvad_process
}

/** WebRTC's detector (https://github.com/dpirch/libfvad). */
export class WebRtcVoiceDetector implements VoiceDetector {
  readonly frameSamples = 480; // 30 ms, the longest that it accepts
  readonly #fvad: Fvad;
  readonly #detector: number;
  readonly #frame: number;

  private constructor(fvad: Fvad) {
    this.#fvad = fvad;
    this.#detector = fvad.e();
    fvad.j(this.#detector, MODE);
    fvad.k(this.#detector, RATE);
    this.#frame = fvad.f(2 * this.frameSamples);
  }

  /** `wasm`: the address of `fvad.wasm` of this package, for build tools that do not find it, or its content. */
  static async load(
    wasm: string | URL | BufferSource = new URL("./fvad.wasm", import.meta.url),
  ): Promise<WebRtcVoiceDetector> {
    const content = typeof wasm === "string" || wasm instanceof URL ? await fetched(wasm) : wasm;
    const failed = () => {
      throw new Error("the voice detector has failed");
    };
    const noMoreMemory = () => 0; // A detector needs less than the memory that it begins with.
    const { instance } = await WebAssembly.instantiate(content, { a: { a: failed, b: noMoreMemory } });
    const fvad = instance.exports as unknown as Fvad;
    fvad.d();
    return new WebRtcVoiceDetector(fvad);
  }

  isVoice(frame: Int16Array): boolean {
    new Int16Array(this.#fvad.c.buffer, this.#frame, this.frameSamples).set(frame);
    return this.#fvad.l(this.#detector, this.#frame, this.frameSamples) === 1;
  }

  free(): void {
    this.#fvad.i(this.#frame);
    this.#fvad.h(this.#detector);
  }
}

async function fetched(url: string | URL): Promise<ArrayBuffer> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} cannot be loaded: status ${response.status}`);
  return response.arrayBuffer();
}
