// One turn: what the user said, and the answer as it comes; from events, or as the history has it.

const STATES = { running: "running", complete: "complete", interrupted: "interrupted" };
const FINISHES = {
  length: "The answer ends here because it reached its longest length.",
  content_filter: "The answer ends here because the model's own filter stopped it.",
};
const UNHEARD = "…";

let made = 0;

export class Turn {
  user;
  answer = { paragraphs: [], state: "running", notes: [] };
  recordId = null;
  /** What the last event told, where that was an error. */
  fault = null;
  /** Whether the server has begun to keep this turn. */
  kept = false;
  /** Mouth shapes as `[ms, id, index]`; times count from the beginning of the paragraph's audio. */
  shapes = [];
  /** Whether any of the answer's audio has come. */
  sounded = false;
  /** Whether the user wants to hear no more of it. */
  silenced = false;
  /** Whether it shall never have been. */
  dropped = false;
  /** "open", "lost" or "none". */
  line = "none";
  /** Whether the server does not answer that it has ended it. */
  unended = false;
  /** What the user said, in base64, where it was sent while it was said. */
  said = "";
  /** What happened, to look at: `{request, streamId, events, resumed, digest}`. */
  run = null;
  /** How it is read: its stream, and a promise of the fault that ended that, or null. */
  stream = null;
  over = Promise.resolve(null);
  #began = 0;

  /**
   * `before`: the record before this turn's. `speaks`: whether an answer to hear is expected. `heardBefore`: how
   * much was heard before a reload. `languages`: of the user and of the answer, where they are known.
   */
  constructor({ text = UNHEARD, before = 0, speaks = false, heardBefore = 0, languages = [] }) {
    made += 1;
    this.key = `${Date.now()}-${made}`;
    this.user = { paragraphs: [text], state: "running" };
    Object.assign(this, { before, speaks, heardBefore, languages });
    /** Whether there is a stream of it, once that is known. */
    this.opened = new Promise((resolve) => (this.opens = resolve));
  }

  static ofRecord(record) {
    const turn = new Turn({});
    turn.asRecorded(record);
    turn.kept = true;
    return turn;
  }

  get running() {
    return this.answer.state === "running";
  }

  asked(request) {
    this.run = { request, streamId: null, events: [], resumed: [], digest: null };
    this.#began = performance.now();
  }

  /** It is read from behind event `after`: at first, or once more. */
  reads(streamId, after) {
    if (this.run.streamId !== null || this.run.request.method === "GET") this.run.resumed.push(after);
    this.run.streamId = streamId;
    this.opens(true);
  }

  /** Show what the history has of it. */
  asRecorded(record) {
    const [asked, answered] = ["user", "assistant"].map((role) => textOf(record, role));
    this.recordId = record.record_id;
    this.user = { paragraphs: asked.length ? asked : this.user.paragraphs, state: "complete" };
    this.answer = { paragraphs: answered, state: STATES[record.status] ?? "failed", notes: [] };
    this.line = "none";
  }

  /** It was interrupted before there was anything to keep. */
  nothingKept() {
    this.user.state = "complete";
    this.answer = { paragraphs: [], state: "interrupted", notes: [] };
    this.line = "none";
  }

  /** The answer did not come, or broke off. */
  failed() {
    this.user.state = "complete";
    this.answer.state = "failed";
    this.line = "none";
  }

  take({ id, name, content, digest = null }) {
    this.run.events.push({ id, name, content, at_ms: Math.round(performance.now() - this.#began) });
    this.kept ||= name.startsWith("assistant_output");
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
        this.sounded = false;
        break;
      case "assistant_output_audio_chunk":
        this.sounded = true;
        break;
      case "assistant_output_viseme":
        for (const { offset_ms, viseme_id } of content.visemes) {
          this.shapes.push([offset_ms, viseme_id, content.index]);
        }
        break;
      case "end":
        this.run.digest = digest;
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
    this.kept ||= record_id !== null;
    this.line = "none";
    this.user.state = "complete";
    if (finish_reason === "canceled") return; // what remains of it is in the history
    this.answer.state = "complete";
    if (FINISHES[finish_reason]) this.answer.notes.push(FINISHES[finish_reason]);
    if (speech) this.answer.notes.push(`The rest was not spoken: ${speech.message}.`);
  }
}

function textOf(record, role) {
  return record.content
    .filter((message) => message.role === role)
    .flatMap((message) => message.content)
    .filter((item) => item.type === "text")
    .map((item) => item.text);
}
