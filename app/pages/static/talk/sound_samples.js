// Sound that is scheduled sample behind sample, through WebAudio: WAV as it arrives, and what else can be decoded.

const LEAD_S = 0.03; // between the scheduling of a first sample and its time
const HEADER_BYTES = 12;
const CHUNK_BYTES = 8;

let context = null; // one for all answers of a rate: browsers allow few, and a gesture frees the one it meets

function contextOf(sampleRate) {
  if (context?.sampleRate !== sampleRate) {
    context?.close();
    context = new AudioContext({ sampleRate, latencyHint: "interactive" });
  }
  return context;
}

/** Plays `AudioBuffer`s one behind the other, and knows where in them the listener is. */
class Schedule {
  #context;
  #told;
  #out;
  #spans = []; // what plays without a gap: {at_s by the context's clock, from_s in the sound, length_s}
  #running = new Set();
  #whole = false;
  #final_ms = null;
  #off = new AbortController();

  constructor(sampleRate, told) {
    this.#context = contextOf(sampleRate);
    this.#told = told;
    this.#out = this.#context.createGain();
    this.#out.connect(this.#context.destination);
    this.#context.addEventListener("statechange", () => this.#changed(), { signal: this.#off.signal });
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
    const at_s = this.#place(buffer.duration);
    const source = new AudioBufferSourceNode(this.#context, { buffer });
    source.connect(this.#out);
    source.addEventListener("ended", () => this.#finished(source), { signal: this.#off.signal });
    source.start(at_s);
    this.#running.add(source);
    this.#changed();
  }

  end() {
    this.#whole = true;
    if (this.#running.size === 0) this.#finished(null);
  }

  stop() {
    this.#final_ms ??= this.playedMs;
    this.#off.abort();
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

  /** The time of the next `length_s`: right behind what was scheduled, or soon where that is over. */
  #place(length_s) {
    const last = this.#spans.at(-1);
    const end_s = last ? last.at_s + last.length_s : -Infinity;
    if (end_s >= this.#context.currentTime) {
      last.length_s += length_s;
      return end_s;
    }
    const at_s = this.#context.currentTime + LEAD_S;
    const from_s = this.length_s;
    if (last) this.#told.gap(1000 * from_s, 1000 * (at_s - end_s));
    this.#spans.push({ at_s, from_s, length_s });
    return at_s;
  }

  #finished(source) {
    this.#running.delete(source);
    if (this.#running.size > 0) return;
    if (!this.#whole) {
      this.#told.late();
      return;
    }
    this.#final_ms = this.length_s * 1000;
    this.#told.over();
  }

  #changed() {
    if (this.#running.size === 0) return;
    if (this.#context.state === "running") this.#told.playing();
    else if (navigator.userActivation?.hasBeenActive === false) this.#told.blocked();
  }
}

/** WAV, one file for each paragraph: 16-bit samples behind a header. Pieces may be cut anywhere. */
export class WavSound {
  #schedule;
  #starts = new Map();
  #head = null; // bytes of a file whose samples have not begun
  #odd = new Uint8Array(0);
  #format = null;

  constructor(sampleRate, told) {
    this.#schedule = new Schedule(sampleRate, told);
  }

  push(bytes, index) {
    if (!this.#starts.has(index)) {
      this.#starts.set(index, this.#schedule.length_s * 1000);
      [this.#head, this.#odd] = [new Uint8Array(0), new Uint8Array(0)];
    }
    const samples = this.#head === null ? bytes : this.#behindHeader(bytes);
    if (samples.length > 0) this.#play(joined(this.#odd, samples));
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

  #behindHeader(bytes) {
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
    this.#odd = bytes.slice(frames * 2 * channels);
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

/** Sound of any kind where nothing streams it: each paragraph is decoded when it is whole. */
export class DecodedSound {
  #schedule;
  #told;
  #starts = new Map();
  #index = null;
  #pieces = [];
  #order = Promise.resolve();
  #stopped = false;

  constructor(sampleRate, told) {
    this.#schedule = new Schedule(sampleRate, told);
    this.#told = told;
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
      if (!this.#stopped) this.#told.failed();
    }
  }
}

function joined(...pieces) {
  const whole = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** What the header of a WAV says, and where its samples begin; null while it is not whole. */
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
