// The digest of all text and audio of a stream. The server sends its own in `end`.

import type { Digest as SentDigest } from "../api.js";
import { hex, utf8 } from "../crypto/encodings.js";
import { Sha256 } from "../crypto/sha256.js";

export class Digest {
  readonly #hash = new Sha256();
  #chars = 0;

  addText(text: string): void {
    this.#hash.update(utf8(text));
    for (const _ of text) this.#chars += 1; // code points
  }

  addAudio(bytes: Uint8Array): void {
    this.#hash.update(bytes);
  }

  /** Return whether it is the digest that the server has sent. Called once, at the end. */
  matches({ chars, sha256 }: SentDigest): boolean {
    return chars === this.#chars && sha256 === hex(this.#hash.digest());
  }
}
