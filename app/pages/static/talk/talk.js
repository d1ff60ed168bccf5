// The state of a conversation: sends turns, plays answers, and handles interruptions, lost connections and reloads.

import { DigestMismatch, MicrophoneFault } from "../client/parley-client.js";
import { parametersIn } from "./choices.js";
import { retryMayHelp } from "./errors.js";
import { newestRecords, recordOf } from "./history.js";
import { Playback } from "./playback.js";
import { Turn } from "./turn.js";
import { Voice } from "./voice.js";

const LAST_EVENT_MS = 5_000; // maximum wait for the last event of a cancelled stream
const NOT_YET = Symbol("not yet");

export class Talk {
  turns = [];
  conversationId = null;
  voice;
  /** The last error, with a function to retry if that makes sense: `{fault, retry}`. */
  lastError = null;
  /** The user's choices: `{strategies, speaks, language, answerLanguage, voice, params}`. */
  choices = null;
  #client;
  #playback;
  #saved;
  #onChange;
  #cancelled = Promise.resolve(); // resolves when the server has ended the interrupted turn

  /** `saved` is a `JsonEntry` that survives a reload. `onChange` is called when the page must be redrawn. */
  constructor({ visitor, player, microphone, saved, onChange }) {
    this.#client = visitor.client;
    this.#playback = new Playback(player);
    this.#saved = saved;
    this.#onChange = onChange;
    visitor.onRequest = (url, options) => this.#requested(url, options);
    const onSpeech = (recording) => this.#say({ audio: recording });
    const onLost = () => this.#showError(new MicrophoneFault("lost"));
    this.voice = new Voice({ microphone, player, onSpeech, onLost, onChange });
  }

  get current() {
    return this.turns.at(-1) ?? null;
  }

  /** Whether there is something to interrupt: an answer that is still arriving or playing, or one that is replayed. */
  get interruptible() {
    return this.#playback.replayed !== null || this.#answering;
  }

  get #answering() {
    const turn = this.current;
    if (this.voice.active || this.#playback.replayed !== null) return false;
    return turn !== null && !turn.silenced && (turn.running || (turn.hasAudio && this.#playback.playing));
  }

  /** Whether there is an open connection to drop. */
  get connected() {
    return this.current?.call?.connection === "open";
  }

  /** "idle", "opening", "listening", "thinking", "speaking", "blocked" or "lost". */
  get phase() {
    if (this.voice.active) return this.voice.heard ? "listening" : "opening";
    if (this.current?.call?.connection === "lost") return "lost";
    if (!this.interruptible) return "idle";
    if (this.#playback.blocked) return "blocked";
    return this.#playback.playing ? "speaking" : "thinking";
  }

  /** The mouth shapes of the answer that is played. */
  get shapes() {
    return (this.#playback.replayed ?? this.current)?.shapes ?? [];
  }

  /** After a reload: show the history of the conversation, and resume the answer that was running. */
  async begin() {
    const { conversationId = null, stream } = this.#saved.read();
    this.conversationId = conversationId;
    await this.#reportingErrors(() => this.#readHistory());
    if (stream) this.#resume(stream);
  }

  /** What is typed replaces what the user is saying hands-free, which may be no more than a noise. */
  type(text) {
    this.#discardSpeech();
    return this.#say({ text });
  }

  /** The user starts to speak. This interrupts the answer immediately. */
  async hold() {
    if (this.voice.active) return;
    this.interrupt();
    await this.#reportingErrors(async () => {
      this.lastError = null;
      this.#say({ audio: await this.voice.hold() });
    });
  }

  /** The user has finished speaking. */
  async release() {
    if (this.voice.active) await this.voice.release();
  }

  /** Begin or end the mode in which pauses of the user end turns. */
  toggleHandsFree() {
    if (this.voice.handsFree) this.voice.stopHandsFree();
    else return this.#reportingErrors(() => this.voice.startHandsFree());
  }

  /** Interrupt the answer. The server keeps the part that was heard. When this resolves, the next turn may begin. */
  interrupt() {
    if (this.#playback.replayed !== null) this.#playback.stopReplay();
    else if (this.#answering) this.#cancelled = this.#cancel(this.current);
    return this.#cancelled;
  }

  /** Whether the answer of a turn can be played once more. */
  canReplay(turn) {
    return turn.hasAudio && !turn.running;
  }

  /** Play the answer of a turn once more. What the server knows of it stays as it is. */
  async replay(turn) {
    await this.interrupt();
    this.#playback.replay(turn);
    this.playerChanged();
  }

  /** Drop the connection, as an unreliable network would. */
  dropConnection() {
    this.current?.call?.dropConnection();
  }

  /** Start a new conversation. The old one stays on the server, but this page forgets it. */
  async startNew() {
    this.#discardSpeech();
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
    this.#playback.changed();
    this.remember();
    this.#onChange();
  }

  /** Save what is needed after a reload. */
  remember() {
    const turn = this.current;
    const resumable = turn?.call?.streamId && this.#answering;
    const stream = resumable && {
      id: turn.call.streamId,
      before: this.#recordBefore(turn),
      speaks: turn.speaks,
      heard_ms: this.#playback.heardOf(turn),
    };
    this.#saved.write({ conversationId: this.conversationId, ...(stream && { stream }) });
  }

  /** Send a turn. `input` is `{text}` or `{audio}`; audio is sent while it is recorded, where the browser can. */
  async #say(input) {
    this.lastError = null;
    const cancelled = this.interrupt();
    const turn = this.#newTurn({ input });
    if (input.audio) this.#listen(turn);
    await cancelled;
    if (turn.removed) return;
    const { strategies, language, answerLanguage, voice, params } = this.choices;
    const { values } = parametersIn(params);
    turn.call = this.#client.converse({
      strategies,
      languageCode: language,
      targetLanguageCode: answerLanguage,
      ...(voice && { voice }),
      ...(values && { params: values }),
      conversationId: this.conversationId,
      ...input,
      ...this.#readOptions(turn),
    });
    await this.#read(turn, () => this.#retry(turn));
  }

  async #listen(turn) {
    turn.listening = true;
    await turn.input.audio.ended;
    turn.listening = false;
    this.#onChange();
  }

  /** Discard what the user is saying. It is not sent. */
  #discardSpeech() {
    const turn = this.turns.find(({ listening }) => listening);
    if (!turn) return;
    this.voice.discard();
    this.#remove(turn);
  }

  #newTurn(options) {
    const { speaks, language, answerLanguage } = this.choices ?? {};
    const turn = new Turn({ speaks, languages: [language, answerLanguage], ...options });
    this.turns.push(turn);
    this.#onChange();
    return turn;
  }

  /** The id of the last record before a turn, or 0. It changes when the turn before, which may be interrupted, gets its own. */
  #recordBefore(turn) {
    const earlier = this.turns.slice(0, this.turns.indexOf(turn));
    return Math.max(0, ...earlier.map(({ recordId }) => recordId ?? 0));
  }

  #readOptions(turn) {
    const onConnection = (state, afterId) => {
      turn.connectionChanged(state, afterId);
      this.remember();
      this.#onChange();
    };
    return { signal: turn.signal, onConnection };
  }

  #requested(url, options) {
    const key = options.headers["Idempotency-Key"];
    const ofTurn = ({ streamId, idempotencyKey }) => (key ? key === idempotencyKey : streamId && url.endsWith(`/stream/${streamId}`));
    const turn = options.method !== "DELETE" && this.turns.find(({ call }) => call && ofTurn(call));
    if (turn) turn.requested(url, options);
  }

  /** Read the events of a turn to their end. Return the error that ended them, or null. */
  async #read(turn, retry = null) {
    turn.reading = this.#eventsOf(turn);
    const error = await turn.reading;
    if (turn.removed) return null;
    if (error?.kind === "short") {
      this.#remove(turn);
      this.#showError(error);
    } else if (error) {
      turn.failed(error);
      this.#playback.end(turn);
      this.#showError(error, retry);
    } else if (turn.running && !turn.silenced) {
      await this.#reportingErrors(() => this.#replaceByRecord(turn)); // Another reader has cancelled it.
    }
    this.remember();
    this.#onChange();
    return error;
  }

  async #eventsOf(turn) {
    try {
      for await (const event of turn.call) {
        this.#handle(turn, event.name === "end" ? { ...event, digest: "matches" } : event);
      }
    } catch (error) {
      if (!(error instanceof DigestMismatch)) return error;
      this.#handle(turn, { ...error.end, digest: "differs" });
    }
    return null;
  }

  #handle(turn, event) {
    turn.handle(event);
    if (turn.stored && this.turns.includes(turn)) this.conversationId = turn.call.conversationId;
    this.#playback.push(turn, event);
    this.#onChange();
  }

  async #cancel(turn) {
    const heardMs = this.#playback.silence(turn);
    this.#onChange();
    if (turn.call === null) return this.#remove(turn); // It was not sent yet.
    await this.#reportingErrors(() => turn.call.interrupt({ heardMs }));
    this.#reportingErrors(() => this.#replaceByRecord(turn)); // The next turn does not wait for this.
  }

  /** Replace an interrupted turn by its record in the history. */
  async #replaceByRecord(turn) {
    const late = new Promise((resolve) => setTimeout(resolve, LAST_EVENT_MS, NOT_YET));
    const last = await Promise.race([turn.reading, late]);
    try {
      const { conversationId } = turn.call;
      const { recordId, ended } = turn;
      const mayBeStored = recordId !== null || (!ended && last !== NOT_YET && conversationId !== null);
      const stored = { recordId, before: this.#recordBefore(turn) };
      const record = mayBeStored ? await recordOf(this.#client, conversationId, stored) : null;
      if (record) turn.replaceByRecord(record);
      else turn.nothingStored();
    } catch (error) {
      if (turn.running) turn.failed(error);
      throw error;
    } finally {
      this.remember();
      this.#onChange();
    }
  }

  async #readHistory() {
    const records = this.conversationId ? await newestRecords(this.#client, this.conversationId) : [];
    if (records === null) this.conversationId = null;
    this.turns = (records ?? []).map((record) => Turn.ofRecord(record));
    this.#onChange();
  }

  async #resume({ id, before, speaks, heard_ms }) {
    this.turns = this.turns.filter(({ recordId }) => recordId <= before);
    const turn = this.#newTurn({ speaks, heardBefore: heard_ms });
    turn.call = this.#client.resume(id, this.#readOptions(turn));
    const error = await this.#read(turn);
    if (!error?.status) return;
    this.lastError = null; // The stream ended too long ago. Only the history has it.
    await this.#reportingErrors(() => this.#readHistory());
    this.remember();
  }

  #retry(turn) {
    if (turn.recordId === null) this.#remove(turn);
    return this.#say(turn.input);
  }

  #remove(turn) {
    turn.leave();
    this.turns = this.turns.filter((other) => other !== turn);
    this.#onChange();
  }

  #showError(fault, retry = null) {
    const canRetry = retry !== null && !(fault instanceof MicrophoneFault) && retryMayHelp(fault);
    this.lastError = { fault, retry: canRetry ? retry : null };
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
