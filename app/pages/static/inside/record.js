// What the panel "Look inside" shows of one request: the page reports what happens, and the panel reads it.
//
//   const record = new TurnRecord({ method, url, headers, parameters, text, said }); // when the request is sent
//   record.connected(streamId, lastId); // each time the stream is open: `lastId` is the last event that was read, or 0
//   record.lost(); // each time its connection is lost
//   record.received(event); // each event, once and in order
//   record.failed(error); // if it ends without an event `end` or `error`
//
// The page draws again after each call. It gives the panel the records of its turns, oldest first.

const AUDIO = "assistant_output_audio_chunk";

let count = 0;

export class TurnRecord {
  /** The request as it was sent: see the constructor. */
  request;
  /** When it was sent. */
  at = new Date();
  streamId = null;
  /** `[{key, id, name, content, bytes, at_ms}]`: `bytes` is the size of the content, `at_ms` the time since the request. */
  events = [];
  /** The times without a connection: `[{lost_ms, open_ms, after}]`. While it is lost, `open_ms` and `after` are null. */
  gaps = [];
  /** Ids of the events after which the stream was resumed. */
  resumed = [];
  /** The comparison of the digest: "matches", "differs", or null if it is unknown. */
  digest = null;
  /** `{error_type, message, extra}` of what ended the stream, or null. */
  fault = null;
  /** When the last event, or the error, arrived: milliseconds since the request. Null while the stream runs. */
  ended_ms = null;
  #began = performance.now();
  #first = new Map(); // the first event of each name
  #last = new Map(); // the last event of each name

  /**
   * `request`: `{method, url, headers, parameters, text, said}`. `url` may be relative. `headers` may contain the session
   * token, which the panel never shows. `parameters`: the JSON object at the beginning of the body, or null if there is
   * no body. `text`: the input that follows it, or null if the input is audio. `said`: what the list of turns calls it
   * until its input is recognized.
   */
  constructor(request) {
    count += 1;
    this.key = `request-${count}`;
    const { parameters = null, text = null, said = text ?? "" } = request;
    this.request = { ...request, parameters, text, said };
  }

  /** Note that the stream is being read after event `lastId`: for the first time, or resumed. */
  connected(streamId, lastId) {
    const gap = this.#openGap;
    if (gap) Object.assign(gap, { open_ms: this.#now(), after: lastId });
    if (this.streamId !== null || this.request.method === "GET") this.resumed.push(lastId);
    this.streamId = streamId;
  }

  /** Note that the connection was lost. Further calls before `connected` have no effect. */
  lost() {
    if (!this.#openGap && this.ended_ms === null) this.gaps.push({ lost_ms: this.#now(), open_ms: null, after: null });
  }

  /**
   * Note an event. `event`: `{id, name, content}`, and for `end` the `digest` if the page compares it. A decoded audio
   * next to the `content` is ignored.
   */
  received({ id, name, content, digest = null }) {
    const key = this.events.length; // An error of a lost process has no id.
    const event = { key, id, name, content, bytes: sizeOf(name, content), at_ms: this.#now() };
    this.events.push(event);
    if (!this.#first.has(name)) this.#first.set(name, event);
    this.#last.set(name, event);
    if (name === "end") this.digest = digest;
    if (name === "error") this.fault = content.error;
    if (name === "end" || name === "error") this.ended_ms = event.at_ms;
  }

  /** Note that the request or its stream failed. `error` may be any exception; the server's has `errorType` and `extra`. */
  failed({ errorType, error_type = errorType, message, extra = {} }) {
    this.fault ??= { error_type: error_type ?? "connection_lost", message, extra };
    this.ended_ms ??= this.#now();
  }

  get running() {
    return this.ended_ms === null;
  }

  /** Milliseconds since the request, or until its end. */
  get elapsed_ms() {
    return this.ended_ms ?? this.#now();
  }

  /** The content of the event `end`, or undefined. */
  get end() {
    return this.last("end")?.content;
  }

  /** The failed attempts, as the last event tells them. */
  get failures() {
    return this.fault?.extra?.attempts ?? this.end?.attempts ?? [];
  }

  /** What the user has said, as sent or as recognized. */
  get said() {
    return this.first("user_input")?.content ?? this.request.said;
  }

  /** Whether the input is audio. */
  get isSpoken() {
    return this.request.parameters?.type === "audio";
  }

  /** The first event of a name, or undefined. */
  first(name) {
    return this.#first.get(name);
  }

  /** The last event of a name, or undefined. */
  last(name) {
    return this.#last.get(name);
  }

  get #openGap() {
    const gap = this.gaps.at(-1);
    return gap?.open_ms === null ? gap : undefined;
  }

  #now() {
    return Math.round(performance.now() - this.#began);
  }
}

/** The size of a content in bytes. That of audio, which is large, is not encoded to count it. */
const sizeOf = (name, content) => (name === AUDIO ? (content.audio?.length ?? 0) : JSON.stringify(content).length);
