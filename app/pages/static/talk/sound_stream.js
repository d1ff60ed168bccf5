// Plays MP3 while it arrives, through MediaSource. Pieces are whole frames; paragraphs follow each other.

const Source = window.MediaSource ?? window.ManagedMediaSource; // iPhones have only the latter.
const FALSE_START_MS = 40; // At the start, Chromium's clock advances a little and then stops until the device plays.

/** Return whether this browser can stream audio of that type. */
export const canStream = (mimeType) => Boolean(Source?.isTypeSupported(mimeType));

export class StreamedSound {
  #audio;
  #listener;
  #source = new Source();
  #url;
  #buffer = null;
  #waiting = []; // [bytes, index] not yet appended to the buffer
  #starts = new Map();
  #complete = false;
  #started = false;
  #silentSince = null;
  #listeners = new AbortController();

  /** `listener` has the methods `playing()`, `late()`, `blocked()`, `ended()`, `failed()` and `gap(at_ms, ms)`. */
  constructor(audio, listener, mimeType) {
    this.#audio = audio;
    this.#listener = listener;
    this.#url = URL.createObjectURL(this.#source);
    const once = { once: true, signal: this.#listeners.signal };
    const always = { signal: this.#listeners.signal };
    this.#source.addEventListener("sourceopen", () => this.#open(mimeType), once);
    audio.addEventListener("playing", () => this.#onPlaying(), always);
    audio.addEventListener("waiting", () => this.#onWaiting(), always);
    audio.addEventListener("timeupdate", () => this.#append(), always); // The buffer may have room again.
    audio.addEventListener("ended", () => listener.ended(), once);
    audio.addEventListener("error", () => listener.failed(), once);
    audio.disableRemotePlayback = true; // Otherwise ManagedMediaSource does not open.
    audio.src = this.#url;
    this.resume();
  }

  push(bytes, index) {
    this.#waiting.push([bytes, index]);
    this.#append();
  }

  end() {
    this.#complete = true;
    this.#append();
  }

  /** Stop immediately. */
  stop() {
    this.#listeners.abort();
    this.#audio.pause();
    this.#audio.removeAttribute("src");
    this.#audio.load();
    URL.revokeObjectURL(this.#url);
  }

  /** Play, or try again after the browser has blocked it. */
  resume() {
    this.#audio.play().catch((error) => {
      if (error.name === "NotAllowedError" && !this.#listeners.signal.aborted) this.#listener.blocked();
    });
  }

  get playedMs() {
    const ms = this.#audio.currentTime * 1000;
    return ms < FALSE_START_MS ? 0 : ms;
  }

  startOf(index) {
    return this.#starts.get(index) ?? null;
  }

  #open(mimeType) {
    this.#buffer = this.#source.addSourceBuffer(mimeType);
    this.#buffer.addEventListener("updateend", () => this.#append(), { signal: this.#listeners.signal });
    this.#append();
  }

  #append() {
    if (this.#buffer === null || this.#buffer.updating || this.#source.readyState !== "open") return;
    if (this.#waiting.length > 0) this.#appendPiece(...this.#waiting[0]);
    else if (this.#complete && this.#buffer.buffered.length > 0) this.#source.endOfStream();
    else if (this.#complete) this.#listener.ended(); // Without any frame, endOfStream would be an error.
  }

  #appendPiece(bytes, index) {
    if (!this.#starts.has(index)) this.#starts.set(index, this.#bufferedMs());
    try {
      this.#buffer.appendBuffer(bytes);
      this.#waiting.shift();
    } catch (error) {
      if (error.name !== "QuotaExceededError") this.#listener.failed();
    }
  }

  #bufferedMs() {
    const { buffered } = this.#buffer;
    return buffered.length > 0 ? buffered.end(buffered.length - 1) * 1000 : 0;
  }

  #onPlaying() {
    if (this.#silentSince !== null) this.#listener.gap(this.playedMs, performance.now() - this.#silentSince);
    this.#silentSince = null;
    this.#started = true;
    this.#listener.playing();
  }

  #onWaiting() {
    if (this.#started) this.#silentSince ??= performance.now();
    this.#listener.late();
  }
}
