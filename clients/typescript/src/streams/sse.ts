// A parser of Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html). It is fed with bytes
// as they arrive, and has the same result however they are split.

export interface Message {
  name: string;
  data: string;
  /** The id of this event itself, or null if it has none. */
  id: string | null;
}

export class SseParser {
  readonly #decoder = new TextDecoder(); // It removes a byte order mark.
  #rest = "";
  #data: string[] = [];
  #name = "";
  #id: string | null = null;

  /** Return the events that are complete with these bytes. */
  feed(bytes: Uint8Array): Message[] {
    const text = this.#rest + this.#decoder.decode(bytes, { stream: true });
    // A line feed that follows may belong to a carriage return at the end.
    const end = text.endsWith("\r") ? text.length - 1 : text.length;
    const lines = text.slice(0, end).split(/\r\n|\n|\r/);
    this.#rest = lines.pop()! + text.slice(end);
    const messages: Message[] = [];
    for (const line of lines) {
      if (line !== "") this.#field(line);
      else this.#dispatch(messages);
    }
    return messages;
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#name = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
  }

  #dispatch(messages: Message[]): void {
    if (this.#data.length > 0) {
      messages.push({ name: this.#name || "message", data: this.#data.join("\n"), id: this.#id });
    }
    this.#data = [];
    this.#name = "";
    this.#id = null;
  }
}
