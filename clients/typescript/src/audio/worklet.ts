// Audio worklet: converts the microphone signal to 16-bit samples of the requested rate. It imports nothing, because a
// worklet is loaded by its address.

const BLOCK = 1_200; // samples: 75 ms, and a multiple of 3 bytes
const PHASES = 128; // positions between two samples for which the filter is precomputed
const ZEROS = 12; // zero crossings of the filter on each side

// The compiler knows pages only, and not what worklets have.
declare const sampleRate: number;
declare const registerProcessor: (name: string, processor: new (options: Options) => Processor) => void;
declare abstract class AudioWorkletProcessor {
  readonly port: MessagePort;
}
interface Processor {
  process(inputs: Float32Array[][]): boolean;
}
interface Options {
  processorOptions: { rate: number };
}

/** Return a windowed sinc low-pass at `PHASES` positions between two samples, against aliasing at the new rate. */
function filters(step: number): Float32Array[] {
  const cut = 0.92 / Math.max(1, step);
  const reach = Math.ceil(ZEROS / cut);
  return Array.from({ length: PHASES }, (_, phase) => {
    const taps = Float32Array.from({ length: 2 * reach }, (_, tap) => {
      const x = tap - reach + 1 - phase / PHASES;
      const sinc = x === 0 ? 1 : Math.sin(Math.PI * cut * x) / (Math.PI * cut * x);
      return Math.abs(x) < reach ? cut * sinc * Math.cos((Math.PI * x) / (2 * reach)) ** 2 : 0;
    });
    const sum = taps.reduce((total, tap) => total + tap, 0);
    return taps.map((tap) => tap / sum);
  });
}

class Pcm extends AudioWorkletProcessor implements Processor {
  readonly #step: number;
  readonly #filters: Float32Array[];
  readonly #block = new Int16Array(BLOCK);
  #input = new Float32Array(0); // input not yet consumed
  #at = 0; // position of the next output sample in `#input`
  #filled = 0;
  #loudest = 0;

  constructor({ processorOptions }: Options) {
    super();
    this.#step = sampleRate / processorOptions.rate;
    this.#filters = filters(this.#step);
    this.port.onmessage = () => {
      this.#send();
      this.port.postMessage({ samples: null });
    };
  }

  process([input]: Float32Array[][]): boolean {
    if (input?.[0]) this.#convert(input[0]);
    return true;
  }

  #convert(channel: Float32Array): void {
    const joined = new Float32Array(this.#input.length + channel.length);
    joined.set(this.#input);
    joined.set(channel, this.#input.length);
    const taps = this.#filters[0]!.length;
    let at = this.#at;
    for (; Math.floor(at) + taps <= joined.length; at += this.#step) {
      const from = Math.floor(at);
      const filter = this.#filters[Math.floor((at - from) * PHASES)]!;
      let sample = 0;
      for (let tap = 0; tap < taps; tap += 1) sample += joined[from + tap]! * filter[tap]!;
      this.#append(sample);
    }
    const used = Math.min(Math.floor(at), joined.length);
    this.#input = joined.slice(used);
    this.#at = at - used;
  }

  #append(sample: number): void {
    const clipped = Math.max(-1, Math.min(1, sample));
    this.#loudest = Math.max(this.#loudest, Math.abs(clipped));
    this.#block[this.#filled] = Math.round(clipped * 0x7fff);
    this.#filled += 1;
    if (this.#filled === BLOCK) this.#send();
  }

  #send(): void {
    if (this.#filled === 0) return;
    this.port.postMessage({ samples: this.#block.slice(0, this.#filled), level: this.#loudest });
    this.#filled = 0;
    this.#loudest = 0;
  }
}

registerProcessor("pcm", Pcm);

export {};
