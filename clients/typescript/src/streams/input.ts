// The input of a stream: the bytes that follow the parameters. They are kept, so that the request can be repeated.

import { base64, utf8 } from "../crypto/encodings.js";
import type { RequestBody } from "../http/transport.js";

export type Pieces<T> = T | Iterable<T> | AsyncIterable<T>;

/** Pieces that are read from their source once, when they are first needed, and can then be read again. */
export class Input {
  readonly #pieces: Uint8Array[] = [];
  readonly #source: AsyncIterator<Uint8Array>;
  #reading: Promise<void> | null = null;
  #ended = false;
  /** The error that the source has thrown. */
  failure: { error: unknown } | null = null;

  constructor(source: AsyncGenerator<Uint8Array>) {
    this.#source = source;
  }

  /** Return piece number `position`, or null after the last one. */
  async piece(position: number): Promise<Uint8Array | null> {
    while (position >= this.#pieces.length) {
      if (this.failure) throw this.failure.error;
      if (this.#ended) return null;
      this.#reading ??= this.#read().finally(() => (this.#reading = null));
      await this.#reading;
    }
    return this.#pieces[position]!;
  }

  /** Stop reading from the source. */
  close(): void {
    if (this.#ended) return;
    this.#ended = true;
    void Promise.resolve(this.#source.return?.()).catch(() => {}); // It may wait for the next piece.
  }

  async #read(): Promise<void> {
    try {
      const { done, value } = await this.#source.next();
      if (done) this.#ended = true;
      else this.#pieces.push(value);
    } catch (error) {
      this.failure = { error };
    }
  }
}

/** Return the body of a request: parameters, which are signed, and the input behind them. */
export function inputBody(parameters: unknown, input: Input, { live }: { live: boolean }): RequestBody {
  const signed = utf8(JSON.stringify(parameters));
  const contentType = "application/octet-stream";
  return { contentType, signed, uploads: true, open: () => (live ? streamOf(signed, input) : joined(signed, input)) };
}

/** Yield text in UTF-8. */
export async function* encodedText(source: Pieces<string>): AsyncGenerator<Uint8Array> {
  for await (const piece of piecesIn(source, (value) => typeof value === "string")) yield utf8(piece);
}

/** Yield audio as one text in Base64, of which each piece is encoded by itself: pieces are cut at multiples of 3 bytes. */
export async function* encodedAudio(source: Pieces<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest = new Uint8Array();
  for await (const piece of piecesIn(source, (value) => value instanceof Uint8Array)) {
    const bytes = new Uint8Array(rest.length + piece.length);
    bytes.set(rest);
    bytes.set(piece, rest.length);
    const whole = bytes.length - (bytes.length % 3);
    rest = bytes.slice(whole);
    if (whole > 0) yield utf8(base64(bytes.subarray(0, whole)));
  }
  if (rest.length > 0) yield utf8(base64(rest));
}

async function* piecesIn<T>(source: Pieces<T>, isPiece: (value: unknown) => boolean): AsyncGenerator<T> {
  if (isPiece(source)) yield source as T;
  else yield* source as AsyncIterable<T>;
}

function streamOf(head: Uint8Array, input: Input): ReadableStream<Uint8Array> {
  let position = -1;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const piece = position < 0 ? head : await input.piece(position);
      position += 1;
      if (piece === null) controller.close();
      else controller.enqueue(piece);
    },
  });
}

async function joined(head: Uint8Array, input: Input): Promise<Uint8Array> {
  const pieces = [head];
  for (let position = 0; ; position += 1) {
    const piece = await input.piece(position);
    if (piece === null) break;
    pieces.push(piece);
  }
  const bytes = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let filled = 0;
  for (const piece of pieces) {
    bytes.set(piece, filled);
    filled += piece.length;
  }
  return bytes;
}
