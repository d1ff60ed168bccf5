// One turn as the page shows it: the user's input and the answer, from events of its stream or from the history.

import { TurnRecord } from "../inside/record.js";

const STATES = { running: "running", complete: "complete", interrupted: "interrupted" };
const FINISHES = {
  length: "The answer ends here because it reached its maximum length.",
  content_filter: "The answer ends here because the model's content filter stopped it.",
};

let count = 0;

export class Turn {
  user = { paragraphs: [], state: "running" };
  answer = { paragraphs: [], state: "running", notes: [] };
  /** When the turn began. */
  at = new Date();
  recordId = null;
  /** Whether the last event has arrived. Then, without a `recordId`, the server has stored nothing. */
  ended = false;
  /** Whether the server has stored anything of this turn. */
  stored = false;
  /** Mouth shapes as `[ms, id, index]`, timed from the start of the paragraph's audio. */
  shapes = [];
  /** The events with the audio of the answer, to replay it. */
  sounds = [];
  /** Milliseconds from the request to the first audio or, without a voice, to the first text. */
  latencyMs = null;
  /** Whether the user is still speaking. */
  listening = false;
  /** Whether the user has interrupted the answer. */
  silenced = false;
  /** The turn of the client, which is read. Null: it waits for the end of the turn before, or is from the history. */
  call = null;
  /** Resolves with the error that ended the reading, or null. */
  reading = Promise.resolve(null);
  /** What the panel "Look inside" shows. Null: no request was sent. */
  details = null;
  #leaving = new AbortController();

  /**
   * `input`: `{text}` or `{audio}`. `speaks`: whether the answer is expected to have audio. `heardBefore`: milliseconds
   * heard before a reload. `languages`: of the user and of the answer.
   */
  constructor({ input = {}, speaks = false, heardBefore = 0, languages = [] } = {}) {
    count += 1;
    this.key = `turn-${count}`;
    Object.assign(this, { input, speaks, heardBefore, languages });
    if (input.text) this.user.paragraphs = [input.text];
  }

  static ofRecord(record) {
    const turn = new Turn();
    turn.replaceByRecord(record);
    turn.stored = true;
    return turn;
  }

  get running() {
    return this.answer.state === "running";
  }

  /** Whether the turn is speech that was interrupted, by noise maybe, before its words were known. */
  get unrecognized() {
    return this.user.state === "interrupted";
  }

  get hasAudio() {
    return this.sounds.length > 0;
  }

  /** Whether the turn was removed from the page. */
  get removed() {
    return this.#leaving.signal.aborted;
  }

  get signal() {
    return this.#leaving.signal;
  }

  /** Stop reading: the turn is removed from the page. */
  leave() {
    this.#leaving.abort();
  }

  /** Note a request of this turn. Only the first one is shown. */
  requested(url, { method, headers }) {
    const { parameters = null } = this.call;
    this.details ??= new TurnRecord({ method, url, headers, parameters, text: this.input.text ?? null });
  }

  /** Note that the connection was opened or lost. `afterId`: the last event that was read. */
  connectionChanged(state, afterId) {
    if (state === "open") this.details.connected(this.call.streamId, afterId);
    else if (state === "lost") this.details?.lost();
  }

  /** Replace the content of the turn by its record in the history. */
  replaceByRecord(record) {
    const [input, answer] = ["user", "assistant"].map((role) => textOf(record, role));
    this.recordId = record.record_id;
    this.at = new Date(record.sys_created_time);
    this.user = { paragraphs: input.length ? input : this.user.paragraphs, state: "complete" };
    this.answer = { paragraphs: answer, state: STATES[record.status] ?? "failed", notes: [] };
    if (this.answer.state === "interrupted") this.sounds = []; // They are longer than what was heard.
  }

  /** Note that the turn was interrupted before anything was stored. */
  nothingStored() {
    this.user.state = this.user.paragraphs.length ? "complete" : "interrupted";
    this.answer = { paragraphs: [], state: "interrupted", notes: [] };
  }

  /** Note that the answer failed or broke off. */
  failed(error) {
    if (error.name === "ParleyError" && error.status === null) this.#lastEvent(error);
    this.details?.failed(error);
    this.recordId ??= error.extra?.record_id ?? null;
    this.user.state = "complete";
    this.answer.state = "failed";
  }

  handle(event) {
    const { name, content } = event;
    const { paragraphs } = this.answer;
    this.details.received(event);
    this.stored ||= name.startsWith("assistant_output");
    switch (name) {
      case "user_input":
        this.user = { paragraphs: [content], state: "complete" };
        break;
      case "assistant_output_chunk":
        paragraphs[content.index] = (paragraphs[content.index] ?? "") + content.text;
        break;
      case "assistant_output_content_segment":
        paragraphs[content.index] = content.text;
        break;
      case "assistant_output_restart":
        paragraphs.length = Math.min(paragraphs.length, content.from_index);
        this.shapes = this.shapes.filter(([, , index]) => index < content.from_index);
        this.sounds = [];
        break;
      case "assistant_output_audio_chunk":
        this.sounds.push(event);
        break;
      case "assistant_output_viseme":
        this.shapes.push(...content.visemes.map(({ offset_ms, viseme_id }) => [offset_ms, viseme_id, content.index]));
        break;
      case "end":
        this.#ended(content);
        break;
    }
  }

  #ended({ finish_reason, record_id, speech, latency_ms }) {
    [this.recordId, this.ended] = [record_id, true];
    this.stored ||= record_id !== null;
    this.latencyMs = latency_ms?.first_audio ?? latency_ms?.first_text ?? null;
    if (finish_reason === "canceled") return; // The history has the part that remains.
    this.user.state = "complete";
    this.answer.state = "complete";
    if (FINISHES[finish_reason]) this.answer.notes.push(FINISHES[finish_reason]);
    if (speech) this.answer.notes.push(`The rest has no audio: ${speech.message}.`);
  }

  /** The client throws the last event of a stream that failed. */
  #lastEvent({ errorType, message, extra }) {
    const id = (this.details.events.at(-1)?.id ?? 0) + 1;
    this.details.received({ id, name: "error", content: { error: { error_type: errorType, message, extra } } });
  }
}

function textOf(record, role) {
  return record.content
    .filter((message) => message.role === role)
    .flatMap((message) => message.content)
    .filter((item) => item.type === "text")
    .map((item) => item.text);
}
