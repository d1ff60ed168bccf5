// The layers of a neural network: matrices of weights, and what they make of vectors.

/** Rows of weights, and one bias for each. */
export class Layer {
  readonly rows: number;
  readonly columns: number;
  readonly #weights: Float32Array;
  readonly #bias: Float32Array;

  constructor(weights: Float32Array, bias: Float32Array) {
    this.rows = bias.length;
    this.columns = weights.length / bias.length;
    this.#weights = weights;
    this.#bias = bias;
  }

  /** Write the rows' products with `input` from `from` on into `out`, from `at`. */
  apply(input: Float32Array, from: number, out: Float32Array, at: number): void {
    const [weights, columns] = [this.#weights, this.columns];
    const whole = columns - (columns % 4);
    for (let row = 0, weight = 0; row < this.rows; row += 1) {
      let [a, b, c, d] = [this.#bias[row]!, 0, 0, 0]; // Four sums do not wait for each other.
      for (let column = 0; column < whole; column += 4, weight += 4) {
        a += weights[weight]! * input[from + column]!;
        b += weights[weight + 1]! * input[from + column + 1]!;
        c += weights[weight + 2]! * input[from + column + 2]!;
        d += weights[weight + 3]! * input[from + column + 3]!;
      }
      for (let column = whole; column < columns; column += 1, weight += 1) {
        a += weights[weight]! * input[from + column]!;
      }
      out[at + row] = a + b + c + d;
    }
  }
}

/**
 * Return the layers of a file with these shapes. It has the scales and the biases of all rows of all layers as floats,
 * and then all weights in 8 bits, which are multiplied by the scale of their row.
 */
export function layersOf(file: ArrayBuffer, shapes: readonly (readonly [rows: number, columns: number])[]): Layer[] {
  const floats = shapes.reduce((total, [rows]) => total + 2 * rows, 0);
  const weights = shapes.reduce((total, [rows, columns]) => total + rows * columns, 0);
  if (file.byteLength !== 4 * floats + weights) throw new Error("these are not the weights of the voice detector");
  let [float, weight] = [0, 4 * floats];
  return shapes.map(([rows, columns]) => {
    const scales = new Float32Array(file, float, rows);
    const bias = new Float32Array(file, float + 4 * rows, rows);
    const quantized = new Int8Array(file, weight, rows * columns);
    float += 8 * rows;
    weight += rows * columns;
    return new Layer(Float32Array.from(quantized, (value, at) => value * scales[Math.floor(at / columns)]!), bias);
  });
}
