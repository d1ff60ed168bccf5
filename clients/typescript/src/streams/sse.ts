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
  #afterReturn = false;
  #data: string[] = [];
  #name = "";
  #id: string | null = null;

  /** Return the events that are complete with these bytes. */
  feed(bytes: Uint8Array): Message[] {
    let text = this.#decoder.decode(bytes, { stream: true });
    if (text === "") return [];
    if (this.#afterReturn && text.startsWith("\n")) text = text.slice(1); // It belongs to the carriage return.
    this.#afterReturn = text.endsWith("\r");
    const lines = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#rest = lines.pop()!;
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
