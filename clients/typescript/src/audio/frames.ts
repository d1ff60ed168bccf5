// Cuts samples, which come in pieces of any length, into frames of one length.

export class Frames {
  readonly #length: number;
  #rest = new Int16Array(0);

  constructor(length: number) {
    this.#length = length;
  }

  /** Return the frames that are complete with these samples. */
  push(samples: Int16Array): Int16Array[] {
    const joined = new Int16Array(this.#rest.length + samples.length);
    joined.set(this.#rest);
    joined.set(samples, this.#rest.length);
    const frames: Int16Array[] = [];
    let at = 0;
    for (; at + this.#length <= joined.length; at += this.#length) frames.push(joined.subarray(at, at + this.#length));
    this.#rest = joined.slice(at);
    return frames;
  }
}
