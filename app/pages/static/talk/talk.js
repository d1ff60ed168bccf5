// The state of a conversation: sends turns, plays answers, and handles interruptions, disconnects and reloads.

import { ErrorResponse } from "./account.js";
import { cancelStream, newestRecords, recordAfter, recordOf } from "./calls.js";
import { HandsFree } from "./hands_free.js";
import { Recorder } from "./recorder.js";
import { MicrophoneFault } from "./microphone.js";
import { delay } from "./backoff.js";
import { parametersIn } from "./choices.js";
import { EventStream, ReaderLeft } from "./stream.js";
import { Turn } from "./turn.js";
import { retryMayHelp } from "./errors.js";

const CONVERSE = "/bp/ai/conversation";
const LAST_EVENT_MS = 5_000; // maximum wait for the last event of a cancelled stream
const NOT_YET = Symbol("not yet");

export class Talk {
  turns = [];
  conversationId = null;
  recorder;
  handsFree;
  /** The last error, with a function to retry if that makes sense: `{fault, retry}`. */
  lastError = null;
  /** The user's choices: `{strategies, speaks, language, answerLanguage, voice, params}`. */
  choices = null;
  #account;
  #player;
  #savedState;
  #onChange;
  #liveTurn = null; // the turn that is sent while the user speaks
  #cancelled = Promise.resolve(); // resolves when the server has ended the interrupted turn
  #replayed = null; // the turn whose answer is played once more

  /** `player` plays answers. `savedState` is a `JsonEntry` that survives a reload. `onChange` is called when the page must be redrawn. */
  constructor(account, player, savedState, onChange) {
    this.#account = account;
    this.#player = player;
    this.#savedState = savedState;
    this.#onChange = onChange;
    this.recorder = new Recorder(onChange);
    this.handsFree = new HandsFree(this.recorder, player, { onBegan: () => this.hold(), onEnded: () => this.release() });
  }

  get current() {
    return this.turns.at(-1) ?? null;
  }

  /** Whether there is something to interrupt: an answer that is still arriving or playing, or one that is replayed. */
  get interruptible() {
    return this.#replayed !== null || this.#answering;
  }

  get #answering() {
    const turn = this.current;
    if (this.recorder.held || this.#replayed !== null) return false;
    return turn !== null && !turn.silenced && (turn.running || (turn.hasAudio && this.#player.playing));
  }

  /** Whether there is an open connection to drop. */
  get connected() {
    return this.current?.connection === "open";
  }

  get status() {
    const turn = this.current;
    if (this.recorder.held) return this.recorder.open ? "Listening" : "Opening the microphone";
    if (turn?.connection === "lost" || turn?.cancelPending) return "Reconnecting";
    if (this.#replayed !== null) return "Speaking";
    if (!this.interruptible) return this.handsFree.on ? "Speak at any time" : "Ready";
    if (turn.hasAudio && this.#player.state === "blocked") return "Touch the page or press a key to hear the answer";
    if (turn.hasAudio && this.#player.playing) return "Speaking";
    return turn.answer.paragraphs.length ? "Answering" : "Thinking";
  }

  /** What the bars of the voice show: "idle", "listening", "thinking" or "speaking". */
  get phase() {
    if (this.recorder.held) return "listening";
    if (!this.interruptible) return "idle";
    return this.#player.playing ? "speaking" : "thinking";
  }

  /** The mouth shapes of the answer that is played. */
  get shapes() {
    return (this.#replayed ?? this.current)?.shapes ?? [];
  }

  /** After a reload: show the history of the conversation, and resume the answer that was running. */
  async begin() {
    const { conversationId = null, stream } = this.#savedState.read();
    this.conversationId = conversationId;
    await this.#reportingErrors(() => this.#readHistory());
    if (stream) this.#resume(stream);
  }

  async type(text) {
    await this.#send({ type: "text", input: text, shown: text });
  }

  /** The user starts to speak. This interrupts the answer immediately. */
  async hold() {
    if (this.recorder.held) return;
    this.lastError = null;
    this.#cancelled = this.interrupt();
    await this.#reportingErrors(() =>
      this.recorder.hold({
        head: () => this.#parameters("audio"),
        send: (body) => this.#sendLive(body),
        onLimit: () => this.release(),
      }),
    );
  }

  /** The user has finished speaking. The recording is sent. */
  async release() {
    if (!this.recorder.held) return;
    const live = this.#liveTurn;
    this.#liveTurn = null;
    let recording = "";
    try {
      recording = await this.recorder.release();
    } catch (error) {
      if (live?.answer.state === "failed") return; // The reason is shown already.
      if (live) this.#remove(live);
      this.#showError(error);
    }
    if (live) live.recording = recording;
    else if (recording) await this.#send({ type: "audio", input: recording });
  }

  /** Begin or end the mode in which pauses of the user end turns. */
  async toggleHandsFree() {
    if (this.handsFree.on) this.handsFree.stop();
    else await this.#reportingErrors(() => this.handsFree.start());
    this.#onChange();
  }

  /** Interrupt the answer. The server keeps the part that was heard. When this resolves, the next turn may begin. */
  interrupt() {
    if (this.#replayed !== null) this.#player.stop();
    else if (this.#answering) this.#cancelled = this.#cancel(this.current, this.#silence(this.current));
    return this.#cancelled;
  }

  /** Whether the answer of a turn can be played once more. */
  canReplay(turn) {
    return turn.sounds.length > 0 && !turn.running;
  }

  /** Play the answer of a turn once more. What the server knows of it stays as it is. */
  async replay(turn) {
    await this.interrupt();
    for (const { mimeType, sampleRate, bytes, index } of turn.sounds) {
      if (mimeType) this.#player.begin(mimeType, sampleRate);
      this.#player.push(bytes, index);
    }
    this.#replayed = turn;
    this.#player.end();
    this.playerChanged();
  }

  /** Drop the connection, as an unreliable network would. */
  dropConnection() {
    this.current?.stream?.dropConnection();
  }

  async startNew() {
    const interrupted = this.interrupt();
    [this.turns, this.conversationId, this.lastError] = [[], null, null];
    this.remember();
    this.#onChange();
    await interrupted;
  }

  dismiss() {
    this.lastError = null;
    this.#onChange();
  }

  /** The state of the player has changed. */
  playerChanged() {
    if (!this.#player.playing) this.#replayed = null;
    this.remember();
    this.#onChange();
  }

  /** Save what is needed after a reload. */
  remember() {
    const turn = this.current;
    const resumable = turn?.stream?.id && this.#answering;
    const stream = resumable && {
      id: turn.stream.id,
      before: turn.before,
      speaks: turn.speaks,
      heard_ms: this.#heardOf(turn),
    };
    this.#savedState.write({ conversationId: this.conversationId, ...(stream && { stream }) });
  }

  #parameters(type) {
    const { strategies, language, answerLanguage, voice, params } = this.choices;
    const { values } = parametersIn(params);
    return JSON.stringify({
      strategies,
      type,
      language_code: language,
      target_language_code: answerLanguage,
      ...(voice && { voice }),
      ...(values && { params: values }),
      ...(this.conversationId && { conversation_id: this.conversationId }),
    });
  }

  async #send(message) {
    this.lastError = null;
    const cancelled = this.interrupt();
    const turn = this.#newTurn({ text: message.shown });
    await cancelled;
    const parameters = this.#parameters(message.type);
    const sent = { parameters: JSON.parse(parameters), text: message.shown };
    await this.#request(turn, parameters + message.input, sent, () => this.#send(message));
  }

  async #sendLive(body) {
    const turn = this.#newTurn({});
    this.#liveTurn = turn;
    await this.#cancelled;
    await this.#request(turn, body, { parameters: JSON.parse(this.#parameters("audio")) }, () => this.#sendRecording(turn));
  }

  /** Send the recording of a turn again whose live upload failed. */
  async #sendRecording(turn) {
    await this.release();
    if (turn.recording) await this.#send({ type: "audio", input: turn.recording });
    else this.#showError(new MicrophoneFault("short"));
  }

  #newTurn(options) {
    const before = Math.max(0, ...this.turns.map(({ recordId }) => recordId ?? 0));
    const { speaks, language, answerLanguage } = this.choices ?? {};
    const turn = new Turn({ before, speaks, languages: [language, answerLanguage], ...options });
    this.turns.push(turn);
    this.#onChange();
    return turn;
  }

  #request(turn, body, sent, retry) {
    const headers = { "Content-Type": "application/octet-stream", "Idempotency-Key": turn.key };
    const request = { method: "POST", url: CONVERSE, headers: this.#account.headers(headers), ...sent };
    return this.#follow(turn, request, (stream) => stream.request(CONVERSE, { body, headers }), retry);
  }

  /** Read the stream of a turn to its end. */
  async #follow(turn, request, read, retry) {
    if (turn.removed) return null;
    turn.requested(request);
    turn.stream = new EventStream(this.#account, {
      onEvent: (event) => this.#handle(turn, event),
      onConnection: (state, after) => this.#connectionChanged(turn, state, after),
    });
    turn.streamEnded = read(turn.stream).then(
      () => null,
      (error) => error,
    );
    const error = await turn.streamEnded;
    if (error !== null) turn.run.failed(error);
    turn.opens(false); // It has no effect if the stream was opened.
    const retryTurn = retry && (() => this.#retry(turn, retry));
    if (error !== null && !(error instanceof ReaderLeft)) {
      turn.failed();
      if (!turn.silenced) this.#player.end();
      this.#showError(error, retryTurn);
    } else if (turn.fault !== null) {
      this.#showError(turn.fault, retryTurn);
    } else if (turn.running && !turn.silenced) {
      await this.#reportingErrors(() => this.#replaceByRecord(turn)); // Another reader has cancelled it.
    }
    this.remember();
    this.#onChange();
    return error;
  }

  #connectionChanged(turn, state, after) {
    turn.connection = state;
    if (state === "lost") turn.run.lost();
    if (state === "open") {
      turn.connected(turn.stream.id, after);
      this.remember();
    }
    this.#onChange();
  }

  #handle(turn, event) {
    turn.handle(event);
    if (turn.stored && this.turns.includes(turn)) this.conversationId = turn.stream.conversationId;
    if (!turn.silenced) this.#play(turn, event);
    this.#onChange();
  }

  #play(turn, { name, content, bytes }) {
    if (name === "assistant_output_audio_chunk") {
      turn.sounds.push({ mimeType: content.mime_type, sampleRate: content.sample_rate, bytes, index: content.index });
      if (content.mime_type) this.#player.begin(content.mime_type, content.sample_rate);
      this.#player.push(bytes, content.index);
    } else if (name === "assistant_output_restart") {
      this.#player.stop();
    } else if (name === "end" || name === "error") {
      this.#player.end();
    }
  }

  /** Stop the audio. Return how many milliseconds of the answer were heard, or null if that is unknown. */
  #silence(turn) {
    turn.silenced = true;
    const { state } = this.#player;
    const inaudible = state === "failed" || (state === "blocked" && turn.heardBefore === 0);
    this.#player.stop();
    this.#onChange();
    return turn.speaks && !inaudible ? this.#heardOf(turn) : null;
  }

  /** Return how much of the answer the user has heard. After a reload it is played from its beginning. */
  #heardOf(turn) {
    return Math.max(turn.hasAudio ? this.#player.playedMs : 0, turn.heardBefore);
  }

  async #cancel(turn, heard_ms) {
    if (!(await turn.opened)) return; // It has failed meanwhile.
    const onLost = () => {
      turn.cancelPending = true;
      this.#onChange();
    };
    await this.#reportingErrors(() => cancelStream(this.#account, turn.stream.id, heard_ms, onLost));
    turn.cancelPending = false;
    this.#reportingErrors(() => this.#replaceByRecord(turn)); // The next turn does not wait for this.
  }

  /** Replace an interrupted turn by its record in the history. */
  async #replaceByRecord(turn) {
    const last = await Promise.race([turn.streamEnded, delay(LAST_EVENT_MS, NOT_YET)]);
    try {
      const { conversationId } = turn.stream;
      let record = null;
      if (turn.recordId !== null) record = await recordOf(this.#account, conversationId, turn.recordId);
      else if (last !== null) record = await recordAfter(this.#account, conversationId, turn.before);
      if (record) turn.replaceByRecord(record);
      else turn.nothingStored();
    } catch (error) {
      if (turn.running) turn.failed();
      throw error;
    } finally {
      this.remember();
      this.#onChange();
    }
  }

  async #readHistory() {
    try {
      const records = this.conversationId ? await newestRecords(this.#account, this.conversationId) : [];
      this.turns = records.map((record) => Turn.ofRecord(record));
    } catch (error) {
      if (!(error instanceof ErrorResponse && error.status === 404)) throw error;
      [this.turns, this.conversationId] = [[], null]; // The conversation was deleted or belongs to another user.
    }
    this.#onChange();
  }

  async #resume({ id, before, speaks, heard_ms }) {
    this.turns = this.turns.filter(({ recordId }) => recordId <= before);
    const turn = this.#newTurn({ before, speaks, heardBefore: heard_ms });
    const request = { method: "GET", url: `/bp/ai/stream/${id}`, headers: this.#account.headers() };
    const error = await this.#follow(turn, request, (stream) => stream.resume(id), null);
    if (!(error instanceof ErrorResponse)) return;
    this.lastError = null; // The stream ended too long ago. Only the history has it.
    await this.#reportingErrors(() => this.#readHistory());
    this.remember();
  }

  #retry(turn, retry) {
    if (turn.recordId === null) this.#remove(turn);
    return retry();
  }

  #remove(turn) {
    turn.removed = true;
    turn.stream?.leave();
    turn.opens(false);
    this.turns = this.turns.filter((other) => other !== turn);
    this.#onChange();
  }

  #showError(fault, retry = null) {
    this.lastError = { fault, retry: retryMayHelp(fault) ? retry : null };
    this.#onChange();
  }

  async #reportingErrors(action) {
    try {
      await action();
    } catch (error) {
      this.#showError(error);
    }
  }
}
