// The events of a stream, which can be read once.

import { ParleyError } from "../errors.js";

const LEFT = "the stream was left before its end";
const READ = "the events of a stream can be read once";
const UNSENT = "the stream was interrupted before it was sent";

/** One loop reads the events, or a loop continues after calls of `next`. Whoever has left the loop gets an error. */
export class SingleReading<T> {
  readonly #read: () => AsyncGenerator<T>;
  #events: AsyncGenerator<T> | null = null;
  #refusal: string | null = null;
  /** Whether the first event was asked for. */
  begun = false;

  constructor(read: () => AsyncGenerator<T>) {
    this.#read = read;
  }

  events(): AsyncGenerator<T> {
    if (this.#refusal !== null) throw refused(this.#refusal);
    this.#events ??= this.#once();
    return this.#events;
  }

  /** Read all events that remain. Throws if a loop was left before. */
  async finish(): Promise<void> {
    for await (const _ of this.events());
    if (this.#refusal !== READ) throw refused(this.#refusal ?? LEFT); // The loop was left before its first event.
  }

  /** There will be no events. */
  cancel(): void {
    this.#refusal ??= UNSENT;
  }

  async *#once(): AsyncGenerator<T> {
    if (this.#refusal !== null) throw refused(this.#refusal);
    this.begun = true;
    let why = LEFT;
    try {
      yield* this.#read();
      why = READ;
    } catch (error) {
      why = READ;
      throw error;
    } finally {
      this.#refusal = why;
    }
  }
}

function refused(why: string): ParleyError {
  return new ParleyError("invalid_operation", `invalid_operation: ${why}`);
}
