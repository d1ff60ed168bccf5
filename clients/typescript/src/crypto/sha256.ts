// SHA-256 and HMAC-SHA256 (FIPS 180-4, RFC 2104). `crypto.subtle` cannot hash a stream piece by piece, and is missing
// on pages without HTTPS and in React Native, so there is one implementation for all environments.

const BLOCK_BYTES = 64;
const CONSTANTS = new Uint32Array([
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
  0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
  0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
  0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
  0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
  0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
  0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
  0xc67178f2,
]);

/** A hash of bytes that arrive in pieces. */
export class Sha256 {
  #state = new Uint32Array([
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
  ]);
  #block = new Uint8Array(BLOCK_BYTES);
  #filled = 0;
  #bytes = 0;
  #words = new Uint32Array(BLOCK_BYTES);

  update(data: Uint8Array): this {
    this.#bytes += data.length;
    for (let position = 0; position < data.length; ) {
      const piece = data.subarray(position, position + BLOCK_BYTES - this.#filled);
      this.#block.set(piece, this.#filled);
      this.#filled += piece.length;
      position += piece.length;
      if (this.#filled === BLOCK_BYTES) this.#compress();
    }
    return this;
  }

  /** Return the hash. The object cannot be used after that. */
  digest(): Uint8Array {
    const bits = this.#bytes * 8;
    this.update(Uint8Array.of(0x80));
    while (this.#filled !== BLOCK_BYTES - 8) this.update(Uint8Array.of(0));
    const length = new DataView(new ArrayBuffer(8));
    length.setUint32(0, Math.floor(bits / 2 ** 32));
    length.setUint32(4, bits >>> 0);
    this.update(new Uint8Array(length.buffer));
    const hash = new DataView(new ArrayBuffer(32));
    this.#state.forEach((word, index) => hash.setUint32(index * 4, word));
    return new Uint8Array(hash.buffer);
  }

  #compress(): void {
    const words = this.#words;
    const block = new DataView(this.#block.buffer);
    for (let i = 0; i < 16; i += 1) words[i] = block.getUint32(i * 4);
    for (let i = 16; i < 64; i += 1) {
      const [early, late] = [words[i - 15]!, words[i - 2]!];
      const s0 = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3);
      const s1 = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10);
      words[i] = words[i - 16]! + s0 + words[i - 7]! + s1;
    }
    let [a, b, c, d, e, f, g, h] = this.#state as unknown as [
      number, number, number, number, number, number, number, number,
    ];
    for (let i = 0; i < 64; i += 1) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + CONSTANTS[i]! + words[i]!) | 0;
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, index) => (this.#state[index]! += word));
    this.#filled = 0;
  }
}

export function hmacSha256(key: Uint8Array, data: Uint8Array): Uint8Array {
  const padded = new Uint8Array(BLOCK_BYTES);
  padded.set(key.length > BLOCK_BYTES ? new Sha256().update(key).digest() : key);
  const inner = new Sha256().update(padded.map((byte) => byte ^ 0x36)).update(data).digest();
  return new Sha256().update(padded.map((byte) => byte ^ 0x5c)).update(inner).digest();
}

function rotate(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}
