// What detects a voice. The one of this package is Silero's, without a runtime for neural networks.

import { SEE_BUNDLERS } from "./format.js";
import { type Layer, layersOf } from "./layers.js";
import { BINS, magnitudes } from "./spectrum.js";

/** Tells frames of 16 kHz mono audio with a voice from those without. */
export interface VoiceDetector {
  /** The number of samples of a frame. */
  readonly frameSamples: number;
  /** Return whether there is a voice in this frame. Frames are given in order. */
  isVoice(frame: Int16Array): boolean;
  /** Release what it holds. */
  free(): void;
}

const VOICE = 0.5; // the probability from which a frame has a voice
const FRAME_SAMPLES = 512;
const CONTEXT_SAMPLES = 64; // of the frame before
const MIRRORED_SAMPLES = 64; // at the end of the frame
const HOP_SAMPLES = 128;
const TIMES = 4; // spectra of a frame
const UNITS = 128; // of the memory
const KERNEL = 3; // Each convolution looks at its time, the one before and the one after.

/** Inputs and outputs of each layer. Those of convolutions are the channels. */
const [FIRST, SECOND, THIRD, FOURTH] = [128, 64, 64, 128] as const;
const SHAPES = [
  [FIRST, KERNEL * BINS],
  [SECOND, KERNEL * FIRST],
  [THIRD, KERNEL * SECOND],
  [FOURTH, KERNEL * THIRD],
  [4 * UNITS, FOURTH + UNITS],
  [1, UNITS],
] as const;

/**
 * Silero VAD, version 6 (https://github.com/snakers4/silero-vad), with which servers hear the ends of turns as well:
 * spectra, four convolutions, a memory (LSTM) and one output.
 */
export class SileroVoiceDetector implements VoiceDetector {
  readonly frameSamples = FRAME_SAMPLES;
  readonly #convolutions: readonly Convolution[];
  readonly #memory: Memory;
  readonly #output: Layer;
  readonly #samples = new Float32Array(CONTEXT_SAMPLES + FRAME_SAMPLES + MIRRORED_SAMPLES);
  readonly #result = new Float32Array(1);

  private constructor(layers: Layer[]) {
    const [first, second, third, fourth, memory, output] = layers as [Layer, Layer, Layer, Layer, Layer, Layer];
    this.#convolutions = [
      new Convolution(first, { times: TIMES, stride: 1 }),
      new Convolution(second, { times: TIMES, stride: 2 }),
      new Convolution(third, { times: TIMES / 2, stride: 2 }),
      new Convolution(fourth, { times: TIMES / 4, stride: 1 }),
    ];
    this.#memory = new Memory(memory);
    this.#output = output;
  }

  /** `weights`: the address of `silero.bin` of this package, for build tools that do not find it, or its content. */
  static async load(
    weights: string | URL | ArrayBuffer = new URL("./silero.bin", import.meta.url),
  ): Promise<SileroVoiceDetector> {
    const file = weights instanceof ArrayBuffer ? weights : await fetched(weights);
    return new SileroVoiceDetector(layersOf(file, SHAPES));
  }

  isVoice(frame: Int16Array): boolean {
    return this.probability(frame) >= VOICE;
  }

  /** Return the probability of a voice in the next frame. */
  probability(frame: Int16Array): number {
    this.#take(frame);
    const [first] = this.#convolutions;
    for (let time = 0; time < TIMES; time += 1) {
      magnitudes(this.#samples, time * HOP_SAMPLES, first!.input, first!.at(time));
    }
    for (const [index, convolution] of this.#convolutions.entries()) {
      const next = this.#convolutions[index + 1];
      if (next) convolution.apply(next.input, next.at(0));
      else convolution.apply(this.#memory.input, 0);
    }
    this.#output.apply(this.#memory.remember(), 0, this.#result, 0);
    return sigmoid(this.#result[0]!);
  }

  free(): void {}

  /** The samples are the end of the frame before, the frame, and its end mirrored. */
  #take(frame: Int16Array): void {
    const samples = this.#samples;
    samples.copyWithin(0, FRAME_SAMPLES, FRAME_SAMPLES + CONTEXT_SAMPLES);
    const end = CONTEXT_SAMPLES + FRAME_SAMPLES;
    for (let at = 0; at < FRAME_SAMPLES; at += 1) samples[CONTEXT_SAMPLES + at] = frame[at]! / 0x8000;
    for (let at = 0; at < MIRRORED_SAMPLES; at += 1) samples[end + at] = samples[end - 2 - at]!;
  }
}

/** A convolution over time with its input, in which a zero precedes the first time and follows the last one. */
class Convolution {
  readonly input: Float32Array;
  readonly #layer: Layer;
  readonly #channels: number;
  readonly #times: number;
  readonly #stride: number;

  constructor(layer: Layer, { times, stride }: { times: number; stride: number }) {
    this.#layer = layer;
    this.#channels = layer.columns / KERNEL;
    this.#times = times;
    this.#stride = stride;
    this.input = new Float32Array((times + 2) * this.#channels);
  }

  /** Return where the channels of a time are in the input. */
  at(time: number): number {
    return (time + 1) * this.#channels;
  }

  /** Write the result into `out`, from `at`. */
  apply(out: Float32Array, at: number): void {
    const { rows } = this.#layer;
    const count = Math.ceil(this.#times / this.#stride);
    for (let time = 0; time < count; time += 1) {
      this.#layer.apply(this.input, time * this.#stride * this.#channels, out, at + time * rows);
    }
    for (let index = at; index < at + count * rows; index += 1) out[index] = Math.max(0, out[index]!);
  }
}

/** A long short-term memory of one layer. */
class Memory {
  /** The values that are given, and the state from the time before. */
  readonly input: Float32Array;
  readonly #layer: Layer;
  readonly #gates: Float32Array;
  readonly #cells = new Float32Array(UNITS);
  readonly #out = new Float32Array(UNITS);

  constructor(layer: Layer) {
    this.#layer = layer;
    this.input = new Float32Array(layer.columns);
    this.#gates = new Float32Array(layer.rows);
  }

  /** Take the input over into the memory. Return the positive part of its new state. */
  remember(): Float32Array {
    const [gates, cells] = [this.#gates, this.#cells];
    this.#layer.apply(this.input, 0, gates, 0);
    for (let unit = 0; unit < UNITS; unit += 1) {
      const kept = sigmoid(gates[UNITS + unit]!) * cells[unit]!;
      cells[unit] = kept + sigmoid(gates[unit]!) * Math.tanh(gates[2 * UNITS + unit]!);
      const state = sigmoid(gates[3 * UNITS + unit]!) * Math.tanh(cells[unit]!);
      this.input[this.input.length - UNITS + unit] = state;
      this.#out[unit] = Math.max(0, state);
    }
    return this.#out;
  }
}

function sigmoid(value: number): number {
  return 1 / (1 + Math.exp(-value));
}

async function fetched(url: string | URL): Promise<ArrayBuffer> {
  const response = await fetch(url);
  // Development servers answer addresses that they do not know with their page.
  const isPage = response.headers.get("content-type")?.startsWith("text/html");
  if (response.ok && !isPage) return response.arrayBuffer();
  throw new Error(`${url} was answered with ${response.ok ? "HTML" : `status ${response.status}`}; ${SEE_BUNDLERS}`);
}
