// The input of a stream: the bytes that follow the parameters. They are kept, so that the request can be repeated.

import { base64, utf8 } from "../crypto/encodings.js";
import { jsonBytes, type RequestBody } from "../http/transport.js";
import type { ByteStream } from "../http/web.js";
import { joined } from "./bytes.js";

/** All at once, or piece by piece as it is made. */
export type Pieces<T> = T | Iterable<T> | AsyncIterable<T>;

/** Pieces that are read from their source once, when they are first needed, and can then be read again. */
export class Input {
  readonly #pieces: Uint8Array[] = [];
  readonly #source: AsyncIterator<Uint8Array>;
  #reading: Promise<void> | null = null;
  readonly #onFailure: (error: unknown) => void;
  #onClosed: () => void = () => {};
  readonly #closed = new Promise<void>((resolve) => (this.#onClosed = resolve));
  #ended = false;
  #failure: { error: unknown } | null = null;

  /** `onFailure` is called with the error that the source has thrown. */
  constructor(source: AsyncGenerator<Uint8Array>, onFailure: (error: unknown) => void) {
    this.#source = source;
    this.#onFailure = onFailure;
  }

  /** Return piece number `position`, or null after the last one. */
  async piece(position: number): Promise<Uint8Array | null> {
    while (position >= this.#pieces.length) {
      if (this.#failure) throw this.#failure.error;
      if (this.#ended) return null;
      this.#reading ??= this.#read().finally(() => (this.#reading = null));
      await Promise.race([this.#reading, this.#closed]); // The next piece may never come.
    }
    return this.#pieces[position]!;
  }

  /** Stop reading from the source. */
  close(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#onClosed();
    void Promise.resolve(this.#source.return?.()).catch(() => {}); // It may wait for the next piece.
  }

  async #read(): Promise<void> {
    try {
      const { done, value } = await this.#source.next();
      if (done) this.#ended = true;
      else this.#pieces.push(value);
    } catch (error) {
      this.#failure = { error };
      this.#onFailure(error);
    }
  }
}

/** Return the body of a request: parameters, which are signed, and the input behind them. */
export function inputBody(parameters: unknown, input: Input, { live }: { live: boolean }): RequestBody {
  const signed = jsonBytes(parameters);
  let unsent = true;
  const streamed = () => {
    unsent = true;
    return streamOf(signed, input, () => (unsent = false));
  };
  const open = () => (live ? streamed() : complete(signed, input));
  return { contentType: "application/octet-stream", signed, isUnsent: () => live && unsent, open };
}

/** Yield text in UTF-8. */
export async function* encodedText(source: Pieces<string>): AsyncGenerator<Uint8Array> {
  for await (const piece of typeof source === "string" ? [source] : source) {
    if (typeof piece !== "string") throw new TypeError("a piece of text must be a string");
    yield utf8(piece);
  }
}

/** Yield audio as one text in Base64. Each piece is encoded by itself, so pieces are cut at multiples of 3 bytes. */
export async function* encodedAudio(source: Pieces<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest = new Uint8Array() as Uint8Array;
  for await (const piece of source instanceof Uint8Array ? [source] : source) {
    if (!(piece instanceof Uint8Array)) throw new TypeError("a piece of audio must be a Uint8Array");
    const bytes = joined([rest, piece]);
    const whole = bytes.length - (bytes.length % 3);
    rest = bytes.slice(whole);
    if (whole > 0) yield utf8(base64(bytes.subarray(0, whole)));
  }
  if (rest.length > 0) yield utf8(base64(rest));
}

function streamOf(head: Uint8Array, input: Input, onEnd: () => void): ByteStream {
  let position = -1;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const piece = position < 0 ? head : await input.piece(position);
      position += 1;
      if (piece !== null) return controller.enqueue(piece);
      onEnd();
      controller.close();
    },
  });
}

async function complete(head: Uint8Array, input: Input): Promise<Uint8Array> {
  const pieces = [head];
  for (let position = 0; ; position += 1) {
    const piece = await input.piece(position);
    if (piece === null) return joined(pieces);
    pieces.push(piece);
  }
}
