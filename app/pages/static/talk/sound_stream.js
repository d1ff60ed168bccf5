// MP3 that is played while it arrives, through MediaSource: whole frames in, paragraph behind paragraph.

const Source = window.MediaSource ?? window.ManagedMediaSource; // phones of one maker have the latter alone
const RUN_UP_MS = 40; // at its start Chromium's clock runs on a little, and stands until the device sounds

/** Whether this browser takes frames of that type as they come. */
export const streams = (mimeType) => Boolean(Source?.isTypeSupported(mimeType));

export class StreamedSound {
  #audio;
  #told;
  #source = new Source();
  #url;
  #buffer = null;
  #waiting = []; // [bytes, index] that the buffer has not taken
  #starts = new Map();
  #whole = false;
  #heard = false;
  #silentSince = null;
  #off = new AbortController();

  /** `told`: what hears `playing()`, `late()`, `blocked()`, `over()`, `failed()` and `gap(at_ms, ms)`. */
  constructor(audio, told, mimeType) {
    this.#audio = audio;
    this.#told = told;
    this.#url = URL.createObjectURL(this.#source);
    const once = { once: true, signal: this.#off.signal };
    const always = { signal: this.#off.signal };
    this.#source.addEventListener("sourceopen", () => this.#open(mimeType), once);
    audio.addEventListener("playing", () => this.#sounds(), always);
    audio.addEventListener("waiting", () => this.#fallsSilent(), always);
    audio.addEventListener("timeupdate", () => this.#append(), always); // room again where the buffer was full
    audio.addEventListener("ended", () => told.over(), once);
    audio.addEventListener("error", () => told.failed(), once);
    audio.disableRemotePlayback = true; // without it ManagedMediaSource does not open
    audio.src = this.#url;
    this.resume();
  }

  push(bytes, index) {
    this.#waiting.push([bytes, index]);
    this.#append();
  }

  end() {
    this.#whole = true;
    this.#append();
  }

  /** Silence at once. What was played stays readable. */
  stop() {
    this.#off.abort();
    this.#audio.pause();
    this.#audio.removeAttribute("src");
    this.#audio.load();
    URL.revokeObjectURL(this.#url);
  }

  /** Play, or ask again to be allowed to. */
  resume() {
    this.#audio.play().catch((error) => {
      if (error.name === "NotAllowedError" && !this.#off.signal.aborted) this.#told.blocked();
    });
  }

  get playedMs() {
    const ms = this.#audio.currentTime * 1000;
    return ms < RUN_UP_MS ? 0 : ms;
  }

  startOf(index) {
    return this.#starts.get(index) ?? null;
  }

  #open(mimeType) {
    this.#buffer = this.#source.addSourceBuffer(mimeType);
    this.#buffer.addEventListener("updateend", () => this.#append(), { signal: this.#off.signal });
    this.#append();
  }

  #append() {
    if (this.#buffer === null || this.#buffer.updating || this.#source.readyState !== "open") return;
    if (this.#waiting.length > 0) this.#take(...this.#waiting[0]);
    else if (this.#whole && this.#buffer.buffered.length > 0) this.#source.endOfStream();
    else if (this.#whole) this.#told.over(); // without a frame it would be an error
  }

  #take(bytes, index) {
    if (!this.#starts.has(index)) this.#starts.set(index, this.#bufferedMs());
    try {
      this.#buffer.appendBuffer(bytes);
      this.#waiting.shift();
    } catch (error) {
      if (error.name !== "QuotaExceededError") this.#told.failed();
    }
  }

  #bufferedMs() {
    const { buffered } = this.#buffer;
    return buffered.length > 0 ? buffered.end(buffered.length - 1) * 1000 : 0;
  }

  #sounds() {
    if (this.#silentSince !== null) this.#told.gap(this.playedMs, performance.now() - this.#silentSince);
    this.#silentSince = null;
    this.#heard = true;
    this.#told.playing();
  }

  #fallsSilent() {
    if (this.#heard) this.#silentSince ??= performance.now();
    this.#told.late();
  }
}
