// The spectrum of audio: magnitudes of a Fourier transform with a Hann window.

export const WINDOW_SAMPLES = 256;
export const BINS = WINDOW_SAMPLES / 2 + 1;
const BITS = Math.log2(WINDOW_SAMPLES);

const HANN = Float64Array.from({ length: WINDOW_SAMPLES }, (_, at) => Math.sin((Math.PI * at) / WINDOW_SAMPLES) ** 2);
const COSINES = Float64Array.from({ length: WINDOW_SAMPLES / 2 }, (_, at) => Math.cos((2 * Math.PI * at) / WINDOW_SAMPLES));
const SINES = Float64Array.from({ length: WINDOW_SAMPLES / 2 }, (_, at) => Math.sin((2 * Math.PI * at) / WINDOW_SAMPLES));
const REVERSED = Uint8Array.from({ length: WINDOW_SAMPLES }, (_, at) =>
  Array.from({ length: BITS }, (_, bit) => ((at >> bit) & 1) << (BITS - 1 - bit)).reduce((sum, bit) => sum | bit, 0),
);
const real = new Float64Array(WINDOW_SAMPLES);
const imaginary = new Float64Array(WINDOW_SAMPLES);

/** Write the magnitudes of the window of `samples` that begins at `from` into `out`, from `at`. */
export function magnitudes(samples: Float32Array, from: number, out: Float32Array, at: number): void {
  for (let index = 0; index < WINDOW_SAMPLES; index += 1) {
    const sample = REVERSED[index]!;
    real[index] = samples[from + sample]! * HANN[sample]!;
  }
  imaginary.fill(0);
  for (let half = 1; half < WINDOW_SAMPLES; half *= 2) combine(half);
  for (let bin = 0; bin < BINS; bin += 1) out[at + bin] = Math.hypot(real[bin]!, imaginary[bin]!);
}

/** One step of the fast Fourier transform: combine neighbouring transforms of `half` samples each. */
function combine(half: number): void {
  const stride = WINDOW_SAMPLES / (2 * half);
  for (let begin = 0; begin < WINDOW_SAMPLES; begin += 2 * half) {
    for (let offset = 0; offset < half; offset += 1) {
      const [low, high] = [begin + offset, begin + offset + half];
      const [cosine, sine] = [COSINES[offset * stride]!, SINES[offset * stride]!];
      const turnedReal = real[high]! * cosine + imaginary[high]! * sine;
      const turnedImaginary = imaginary[high]! * cosine - real[high]! * sine;
      real[high] = real[low]! - turnedReal;
      imaginary[high] = imaginary[low]! - turnedImaginary;
      real[low] = real[low]! + turnedReal;
      imaginary[low] = imaginary[low]! + turnedImaginary;
    }
  }
}
