// The events of a stream, which can be read once.

/** One loop reads the events, or a loop continues after calls of `next`. Whoever has left the loop gets an error. */
export class SingleReading<T> {
  readonly #read: () => AsyncGenerator<T>;
  #events: AsyncGenerator<T> | null = null;
  #over = false;

  constructor(read: () => AsyncGenerator<T>) {
    this.#read = read;
  }

  get begun(): boolean {
    return this.#events !== null;
  }

  events(): AsyncGenerator<T> {
    if (this.#over) throw new Error("the events of a stream can be read once");
    this.#events ??= this.#once();
    return this.#events;
  }

  async *#once(): AsyncGenerator<T> {
    try {
      yield* this.#read();
    } finally {
      this.#over = true;
    }
  }
}
