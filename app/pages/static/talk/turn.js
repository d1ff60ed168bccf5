// One turn: the user's input and the answer, built from stream events or from a record of the history.

import { TurnRecord } from "../inside/record.js";

const STATES = { running: "running", complete: "complete", interrupted: "interrupted" };
const FINISHES = {
  length: "The answer ends here because it reached its maximum length.",
  content_filter: "The answer ends here because the model's content filter stopped it.",
};
const UNKNOWN_INPUT = "…";

let count = 0;

export class Turn {
  user;
  answer = { paragraphs: [], state: "running", notes: [] };
  recordId = null;
  /** The error of the last event, if it was one. */
  fault = null;
  /** Whether the server has stored anything of this turn. */
  stored = false;
  /** Mouth shapes as `[ms, id, index]`, timed from the start of the paragraph's audio. */
  shapes = [];
  /** The audio of the answer as it arrived, to replay it: `{mimeType, sampleRate, bytes, index}`. */
  sounds = [];
  /** When the turn began. */
  at = new Date();
  /** Whether audio of the answer has arrived. */
  hasAudio = false;
  /** Whether the user has interrupted the answer. */
  silenced = false;
  /** Whether the turn was removed from the page. */
  removed = false;
  /** State of the connection: "open", "lost" or "none". */
  connection = "none";
  /** Whether the server has not yet confirmed the cancellation. */
  cancelPending = false;
  /** The recording in base64, if it was sent while the user spoke. */
  recording = "";
  /** The `TurnRecord` of the request, which the panel "Look inside" shows. */
  run = null;
  /** `stream`: the event stream. `streamEnded`: a promise of the error that ended it, or null. */
  stream = null;
  streamEnded = Promise.resolve(null);

  /**
   * `before`: the id of the previous record. `speaks`: whether the answer is expected to have audio. `heardBefore`:
   * milliseconds heard before a reload. `languages`: of the user and of the answer, if known.
   */
  constructor({ text = UNKNOWN_INPUT, before = 0, speaks = false, heardBefore = 0, languages = [] }) {
    count += 1;
    this.key = `${Date.now()}-${count}`;
    this.user = { paragraphs: [text], state: "running" };
    Object.assign(this, { before, speaks, heardBefore, languages });
    /** A promise of whether the stream was opened. */
    this.opened = new Promise((resolve) => (this.opens = resolve));
  }

  static ofRecord(record) {
    const turn = new Turn({});
    turn.replaceByRecord(record);
    turn.stored = true;
    return turn;
  }

  get running() {
    return this.answer.state === "running";
  }

  requested(request) {
    this.run = new TurnRecord(request);
  }

  /** Note that the stream is being read after event `after`: for the first time, or resumed. */
  connected(streamId, after) {
    this.run.connected(streamId, after);
    this.opens(true);
  }

  /** Replace the content of the turn by its record in the history. */
  replaceByRecord(record) {
    const [input, answer] = ["user", "assistant"].map((role) => textOf(record, role));
    this.recordId = record.record_id;
    this.at = new Date(record.sys_created_time);
    this.user = { paragraphs: input.length ? input : this.user.paragraphs, state: "complete" };
    this.answer = { paragraphs: answer, state: STATES[record.status] ?? "failed", notes: [] };
    this.connection = "none";
    if (this.answer.state === "interrupted") this.sounds = []; // They are longer than what was heard.
  }

  /** Note that the turn was interrupted before anything was stored. */
  nothingStored() {
    this.user.state = "complete";
    this.answer = { paragraphs: [], state: "interrupted", notes: [] };
    this.connection = "none";
  }

  /** Note that the answer failed or broke off. */
  failed() {
    this.user.state = "complete";
    this.answer.state = "failed";
    this.connection = "none";
  }

  handle(event) {
    const { name, content } = event;
    this.run.received(event);
    this.stored ||= name.startsWith("assistant_output");
    const { paragraphs } = this.answer;
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
        this.hasAudio = false;
        this.sounds = [];
        break;
      case "assistant_output_audio_chunk":
        this.hasAudio = true;
        break;
      case "assistant_output_viseme":
        for (const { offset_ms, viseme_id } of content.visemes) {
          this.shapes.push([offset_ms, viseme_id, content.index]);
        }
        break;
      case "end":
        this.#ended(content);
        break;
      case "error":
        this.fault = content.error;
        this.recordId = content.error.extra?.record_id ?? null;
        this.failed();
        break;
    }
  }

  #ended({ finish_reason, record_id, speech }) {
    this.recordId = record_id;
    this.stored ||= record_id !== null;
    this.connection = "none";
    this.user.state = "complete";
    if (finish_reason === "canceled") return; // The history has the part that remains.
    this.answer.state = "complete";
    if (FINISHES[finish_reason]) this.answer.notes.push(FINISHES[finish_reason]);
    if (speech) this.answer.notes.push(`The rest has no audio: ${speech.message}.`);
  }
}

function textOf(record, role) {
  return record.content
    .filter((message) => message.role === role)
    .flatMap((message) => message.content)
    .filter((item) => item.type === "text")
    .map((item) => item.text);
}
