// Audio scheduled through WebAudio: WAV while it arrives, and other formats that the browser can decode.

const LEAD_S = 0.03; // between scheduling the first sample and its start
const HEADER_BYTES = 12;
const CHUNK_BYTES = 8;

// Shared by all answers of one rate, because browsers allow few contexts and a gesture unlocks only an existing one.
let context = null;

function contextOf(sampleRate) {
  if (context?.sampleRate !== sampleRate) {
    context?.close();
    context = new AudioContext({ sampleRate, latencyHint: "interactive" });
  }
  return context;
}

/** Plays `AudioBuffer`s one after the other, and reports the playback position. */
class Schedule {
  #context;
  #listener;
  #out;
  #spans = []; // stretches without a gap: {at_s on the context's clock, from_s in the audio, length_s}
  #running = new Set();
  #complete = false;
  #final_ms = null;
  #listeners = new AbortController();

  constructor(sampleRate, listener) {
    this.#context = contextOf(sampleRate);
    this.#listener = listener;
    this.#out = this.#context.createGain();
    this.#out.connect(this.#context.destination);
    this.#context.addEventListener("statechange", () => this.#changed(), { signal: this.#listeners.signal });
    this.resume();
  }

  get context() {
    return this.#context;
  }

  get length_s() {
    const last = this.#spans.at(-1);
    return last ? last.from_s + last.length_s : 0;
  }

  play(buffer) {
    const at_s = this.#reserve(buffer.duration);
    const source = new AudioBufferSourceNode(this.#context, { buffer });
    source.connect(this.#out);
    source.addEventListener("ended", () => this.#finished(source), { signal: this.#listeners.signal });
    source.start(at_s);
    this.#running.add(source);
    this.#changed();
  }

  end() {
    this.#complete = true;
    if (this.#running.size === 0) this.#finished(null);
  }

  stop() {
    this.#final_ms ??= this.playedMs;
    this.#listeners.abort();
    this.#out.disconnect();
    for (const source of this.#running) source.stop();
    this.#running.clear();
  }

  resume() {
    if (this.#context.state !== "running") this.#context.resume().catch(() => {});
  }

  get playedMs() {
    if (this.#final_ms !== null) return this.#final_ms;
    const now_s = this.#context.currentTime - (this.#context.outputLatency || 0);
    const span = this.#spans.findLast(({ at_s }) => at_s <= now_s);
    return span ? 1000 * (span.from_s + Math.min(span.length_s, now_s - span.at_s)) : 0;
  }

  /** Return the start time of the next `length_s`: directly after the scheduled audio, or soon if that is over. */
  #reserve(length_s) {
    const last = this.#spans.at(-1);
    const end_s = last ? last.at_s + last.length_s : -Infinity;
    if (end_s >= this.#context.currentTime) {
      last.length_s += length_s;
      return end_s;
    }
    const at_s = this.#context.currentTime + LEAD_S;
    const from_s = this.length_s;
    if (last) this.#listener.gap(1000 * from_s, 1000 * (at_s - end_s));
    this.#spans.push({ at_s, from_s, length_s });
    return at_s;
  }

  #finished(source) {
    this.#running.delete(source);
    if (this.#running.size > 0) return;
    if (!this.#complete) {
      this.#listener.late();
      return;
    }
    this.#final_ms = this.length_s * 1000;
    this.#listener.ended();
  }

  #changed() {
    if (this.#running.size === 0) return;
    if (this.#context.state === "running") this.#listener.playing();
    else if (navigator.userActivation?.hasBeenActive === false) this.#listener.blocked();
  }
}

/** WAV, one file per paragraph: a header and 16-bit samples. Pieces may be cut anywhere. */
export class WavSound {
  #schedule;
  #starts = new Map();
  #head = null; // the bytes of an incomplete header
  #partial = new Uint8Array(0);
  #format = null;

  constructor(sampleRate, listener) {
    this.#schedule = new Schedule(sampleRate, listener);
  }

  push(bytes, index) {
    if (!this.#starts.has(index)) {
      this.#starts.set(index, this.#schedule.length_s * 1000);
      [this.#head, this.#partial] = [new Uint8Array(0), new Uint8Array(0)];
    }
    const samples = this.#head === null ? bytes : this.#afterHeader(bytes);
    if (samples.length > 0) this.#play(joined(this.#partial, samples));
  }

  end() {
    this.#schedule.end();
  }

  stop() {
    this.#schedule.stop();
  }

  resume() {
    this.#schedule.resume();
  }

  get playedMs() {
    return this.#schedule.playedMs;
  }

  startOf(index) {
    return this.#starts.get(index) ?? null;
  }

  #afterHeader(bytes) {
    this.#head = joined(this.#head, bytes);
    const format = wavFormat(this.#head);
    if (format === null) return new Uint8Array(0);
    const samples = this.#head.subarray(format.offset);
    [this.#format, this.#head] = [format, null];
    return samples;
  }

  #play(bytes) {
    const { channels, sampleRate } = this.#format;
    const frames = Math.floor(bytes.length / (2 * channels));
    this.#partial = bytes.slice(frames * 2 * channels);
    if (frames === 0) return;
    const buffer = new AudioBuffer({ length: frames, numberOfChannels: channels, sampleRate });
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    for (let channel = 0; channel < channels; channel += 1) {
      const samples = buffer.getChannelData(channel);
      for (let at = 0; at < frames; at += 1) {
        samples[at] = view.getInt16(2 * (at * channels + channel), true) / 0x8000;
      }
    }
    this.#schedule.play(buffer);
  }
}

/** Audio of any format that the browser cannot stream. Each paragraph is decoded when it is complete. */
export class DecodedSound {
  #schedule;
  #listener;
  #starts = new Map();
  #index = null;
  #pieces = [];
  #order = Promise.resolve();
  #stopped = false;

  constructor(sampleRate, listener) {
    this.#schedule = new Schedule(sampleRate, listener);
    this.#listener = listener;
  }

  push(bytes, index) {
    if (index !== this.#index) this.#decode();
    this.#index = index;
    this.#pieces.push(bytes);
  }

  end() {
    this.#decode();
    this.#order = this.#order.then(() => this.#stopped || this.#schedule.end());
  }

  stop() {
    this.#stopped = true;
    this.#schedule.stop();
  }

  resume() {
    this.#schedule.resume();
  }

  get playedMs() {
    return this.#schedule.playedMs;
  }

  startOf(index) {
    return this.#starts.get(index) ?? null;
  }

  #decode() {
    if (this.#pieces.length === 0) return;
    const [index, file] = [this.#index, joined(...this.#pieces)];
    this.#pieces = [];
    this.#order = this.#order.then(() => this.#stopped || this.#play(index, file));
  }

  async #play(index, file) {
    try {
      const buffer = await this.#schedule.context.decodeAudioData(file.buffer);
      if (this.#stopped) return;
      this.#starts.set(index, this.#schedule.length_s * 1000);
      this.#schedule.play(buffer);
    } catch {
      if (!this.#stopped) this.#listener.failed();
    }
  }
}

function joined(...pieces) {
  const result = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    result.set(piece, at);
    at += piece.length;
  }
  return result;
}

/** Return the format of a WAV and the offset of its samples, or null if the header is incomplete. */
function wavFormat(head) {
  const view = new DataView(head.buffer, head.byteOffset, head.length);
  const format = { channels: 1, sampleRate: 0, offset: 0 };
  let at = HEADER_BYTES;
  while (at + CHUNK_BYTES <= head.length) {
    const name = String.fromCharCode(...head.subarray(at, at + 4));
    const size = view.getUint32(at + 4, true);
    at += CHUNK_BYTES;
    if (name === "data") return { ...format, offset: at };
    if (name === "fmt " && at + 8 <= head.length) {
      format.channels = view.getUint16(at + 2, true);
      format.sampleRate = view.getUint32(at + 4, true);
    }
    at += size + (size % 2);
  }
  return null;
}
