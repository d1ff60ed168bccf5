// What happened when in a request: the spans of the waterfall, and the times that matter most.
//
// The server tells the time of each stage when it has ended. Until then, and if it fails, the arrival of the events tells
// when the stages were reached. Browsers read no response before they have sent the request, so `start` arrives when the
// input has been sent. How long a failed attempt took is known, but not when it began: attempts of a stage follow
// each other, so they are placed from its beginning on.

const CHUNK = "assistant_output_chunk";
const SEGMENT = "assistant_output_content_segment";
const SENTENCE_END = /[.!?]\s|[。！？\n]/;
const AUDIO = "assistant_output_audio_chunk";
const STAGES = { stt: "Recognition", llm: "Model", tts: "Voice" };
const RECORDING_SHARE = 0.25; // of the axis, if the user spoke for much longer than the rest took

/** Return the milliseconds at which each stage was reached, by the names of `latency_ms`. */
export function marksOf(record) {
  const at = (name) => record.first(name)?.at_ms;
  const seen = {
    admission: at("start"),
    input: at("end_of_speech") ?? at("start"),
    stt: record.isSpoken ? at("user_input") : undefined,
    first_token: at(CHUNK),
    first_text: at(CHUNK),
    first_sentence: sentenceAt(record),
    first_audio: at(AUDIO),
    total: record.ended_ms ?? undefined,
    ...record.end?.latency_ms,
  };
  return Object.fromEntries(Object.entries(seen).filter(([, ms]) => ms !== undefined));
}

/** Return `[{title, ms}]`: how long the user waited for the first word and for the first sound. `ms` may be undefined. */
export function waitsOf(record) {
  const marks = marksOf(record);
  const from = record.isSpoken ? marks.input ?? marks.stt ?? 0 : 0;
  const wait = (ms) => (ms === undefined ? undefined : Math.max(0, ms - from));
  return [
    { title: "First word", ms: wait(marks.first_token) },
    { title: "First sound", ms: wait(marks.first_audio) },
    { title: "Total", ms: marks.total },
  ];
}

/** Return the spans `[{kind, title, from, to, note}]` of a request, in the order of their stages. */
export function spansOf(record) {
  const marks = marksOf(record);
  const complete = [...inputSpans(record, marks), ...answerSpans(record, marks), ...voiceSpans(record, marks)];
  const stages = isInterrupted(record) ? withInterruption(complete, marks.total) : complete;
  const gaps = record.gaps.map(({ lost_ms, open_ms, after }) => ({
    kind: "gap",
    title: "Disconnected",
    from: lost_ms,
    to: open_ms ?? record.elapsed_ms,
    note: open_ms === null ? "connection lost" : after > 0 ? `resumed after event ${after}` : "sent again",
  }));
  return [...stages, ...gaps].map((span) => ({ ...span, to: Math.max(span.from, span.to) }));
}

/** Return `{from, to}`, the milliseconds that the axis shows. A long recording is cut off at its beginning. */
export function axisOf(spans) {
  const to = Math.max(1, ...spans.map((span) => span.to));
  const recording = spans.find(({ kind }) => kind === "recording")?.to ?? 0;
  const rest = to - recording;
  return { from: rest > 0 && recording > rest ? Math.round(recording - RECORDING_SHARE * rest) : 0, to };
}

function inputSpans(record, marks) {
  if (!record.isSpoken) return marks.admission === undefined ? [] : [{ kind: "request", title: "Request", from: 0, to: marks.admission }];
  const until = marks.stt ?? marks.total ?? record.elapsed_ms;
  const earliest = Math.max(0, until - sumOf(failuresIn(record, "stt")));
  const input = marks.input ?? earliest;
  const began = marks.stt === undefined ? Math.min(input, earliest) : input; // They may have begun during the upload.
  const spans = [{ kind: "recording", title: "Upload", from: 0, to: input }, ...failures(record, "stt", began, marks.stt)];
  const stage = { title: STAGES.stt, from: endOf(spans) };
  if (marks.stt !== undefined) spans.push({ ...stage, kind: "stt", to: marks.stt });
  else if (marks.input !== undefined && isOpen(record)) spans.push({ ...stage, kind: "waiting", to: until, note: "waiting" });
  return spans;
}

function answerSpans(record, marks) {
  const from = record.isSpoken ? marks.stt : marks.input ?? marks.admission;
  if (from === undefined) return [];
  const spans = failures(record, "llm", from, record.first("assistant_output_restart") ? undefined : marks.first_token);
  const began = endOf(spans, from);
  if (marks.first_token === undefined) {
    if (!isOpen(record)) return spans;
    const to = marks.total ?? record.elapsed_ms;
    return [...spans, { kind: "waiting", title: STAGES.llm, from: began, to, note: "waiting" }];
  }
  const last = record.last(CHUNK)?.at_ms ?? marks.first_token;
  return [
    ...spans,
    { kind: "model", title: STAGES.llm, from: Math.min(began, marks.first_token), to: marks.first_token },
    { kind: "answer", title: "Answer", from: marks.first_token, to: last },
  ];
}

function voiceSpans(record, marks) {
  const from = marks.first_sentence ?? marks.first_text;
  if (from === undefined) return [];
  const spans = failures(record, "tts", from, marks.first_audio);
  if (marks.first_audio === undefined) return spans;
  const began = Math.min(endOf(spans, from), marks.first_audio);
  return [
    ...spans,
    { kind: "voice", title: STAGES.tts, from: began, to: marks.first_audio },
    { kind: "audio", title: "Audio", from: marks.first_audio, to: record.last(AUDIO)?.at_ms ?? marks.first_audio },
  ];
}

const isInterrupted = ({ end }) => end?.finish_reason === "canceled";

/** Whether the stage that was reached last has not ended by itself. */
const isOpen = (record) => record.running || isInterrupted(record);

/** The last stage of an interrupted request went on until the interruption. */
function withInterruption(stages, at) {
  const tried = stages.filter(({ kind }) => kind !== "failed");
  const last = tried.findLast(({ to }) => to === endOf(tried));
  return stages.map((span) => (span === last ? { ...span, to: at, note: "interrupted" } : span));
}

/** The failed attempts of a stage between `from` and `to`. If they did not fit one after the other, they overlapped. */
function failures(record, stage, from, to) {
  const failed = failuresIn(record, stage);
  const overlap = to !== undefined && from + sumOf(failed) > to;
  let began = from;
  return failed.map(({ strategy, elapsed_ms }) => {
    const span = { kind: "failed", title: STAGES[stage], from: began, to: began + elapsed_ms, note: `${strategy} failed` };
    if (!overlap) began = span.to;
    return span;
  });
}

/** When the text had its first sentence, whose end the voice waits for. */
function sentenceAt({ events }) {
  let text = "";
  for (const { name, content, at_ms } of events) {
    if (name === SEGMENT) return at_ms;
    if (name !== CHUNK) continue;
    text += content.text;
    if (SENTENCE_END.test(text)) return at_ms;
  }
  return undefined;
}

const failuresIn = (record, stage) => record.failures.filter((failure) => failure.stage === stage);

const sumOf = (failed) => failed.reduce((ms, { elapsed_ms }) => ms + elapsed_ms, 0);

const endOf = (spans, from = 0) => Math.max(from, ...spans.map(({ to }) => to));
