// A conversation as it goes on: turns that are asked, heard, interrupted, lost and picked up again.

import { Refused } from "./account.js";
import { cancelStream, newestRecords, recordBehind, recordOf } from "./calls.js";
import { Listening } from "./listening.js";
import { MicrophoneFault } from "./microphone.js";
import { pause } from "./patience.js";
import { EventStream, Left } from "./stream.js";
import { Turn } from "./turn.js";
import { mayHelp } from "./words.js";

const CONVERSE = "/bp/ai/conversation";
const SETTLE_MS = 5_000; // for a cancelled stream to say what became of it
const NOT_YET = Symbol("not yet");
const SHOWN_AUDIO = 60; // characters of a spoken request, where it is shown

export class Talk {
  turns = [];
  conversationId = null;
  ear;
  /** What went wrong, and what asks again, where that makes sense: `{fault, retry}`. */
  trouble = null;
  /** What the user has chosen: `{strategies, speaks, language, answerLanguage}`. */
  choices = null;
  #account;
  #player;
  #memory;
  #onChange;
  #live = null; // the turn that is sent while it is said
  #hushed = Promise.resolve(); // done when the turn that was interrupted is over for the server

  /** `player` plays answers; `memory` outlives a reload; `onChange` is told when there is something else to show. */
  constructor(account, player, memory, onChange) {
    this.#account = account;
    this.#player = player;
    this.#memory = memory;
    this.#onChange = onChange;
    this.ear = new Listening(onChange);
  }

  get current() {
    return this.turns.at(-1) ?? null;
  }

  /** Whether there is an answer to interrupt: it runs, or it is played. */
  get interruptible() {
    const turn = this.current;
    if (this.ear.held) return false;
    return turn !== null && !turn.silenced && (turn.running || (turn.sounded && this.#player.playing));
  }

  /** Whether there is a connection to drop. */
  get plugged() {
    return this.current?.line === "open";
  }

  get status() {
    const turn = this.current;
    if (this.ear.held) return this.ear.open ? "Listening" : "Opening the microphone";
    if (turn?.line === "lost" || turn?.unended) return "Reconnecting";
    if (!this.interruptible) return "Ready";
    if (turn.sounded && this.#player.state === "blocked") return "Touch the page or press a key to hear the answer";
    if (turn.sounded && this.#player.playing) return "Speaking";
    return turn.answer.paragraphs.length ? "Answering" : "Thinking";
  }

  /** Show what was said before the page was loaded, and pick up the answer that was running then. */
  async begin() {
    const { conversationId = null, stream } = this.#memory.read();
    this.conversationId = conversationId;
    await this.#trying(() => this.#readHistory());
    if (stream) this.#pickUp(stream);
  }

  async type(text) {
    await this.#send({ type: "text", input: text, shown: text });
  }

  /** The user begins to talk: what is heard falls silent at once. */
  async hold() {
    if (this.ear.held) return;
    this.trouble = null;
    this.#hushed = this.interrupt();
    await this.#trying(() =>
      this.ear.hold({
        head: () => this.#parameters("audio"),
        send: (body) => this.#sendLive(body),
        onLimit: () => this.letGo(),
      }),
    );
  }

  /** What was said since then is sent. */
  async letGo() {
    if (!this.ear.held) return;
    const live = this.#live;
    this.#live = null;
    let said = "";
    try {
      said = await this.ear.letGo();
    } catch (error) {
      if (live?.answer.state === "failed") return; // why is told
      if (live) this.#drop(live);
      this.#complain(error);
    }
    if (live) live.said = said;
    else if (said) await this.#send({ type: "audio", input: said });
  }

  /** Silence now; the server keeps of the answer what was heard, and the next turn may begin when this is done. */
  interrupt() {
    if (this.interruptible) this.#hushed = this.#interrupted(this.current, this.#hush(this.current));
    return this.#hushed;
  }

  /** Drop the connection in the middle, as a bad network would. */
  pullPlug() {
    this.current?.stream?.pullPlug();
  }

  async renew() {
    const leaving = this.interrupt();
    [this.turns, this.conversationId, this.trouble] = [[], null, null];
    this.remember();
    this.#onChange();
    await leaving;
  }

  dismiss() {
    this.trouble = null;
    this.#onChange();
  }

  /** The player has something to tell. */
  played() {
    this.remember();
    this.#onChange();
  }

  /** Note what a reload must know. */
  remember() {
    const turn = this.current;
    const goesOn = turn?.stream?.id && this.interruptible;
    const stream = goesOn && {
      id: turn.stream.id,
      before: turn.before,
      speaks: turn.speaks,
      heard_ms: this.#heardOf(turn),
    };
    this.#memory.write({ conversationId: this.conversationId, ...(stream && { stream }) });
  }

  #parameters(type) {
    const { strategies, language, answerLanguage } = this.choices;
    return JSON.stringify({
      strategies,
      type,
      language_code: language,
      target_language_code: answerLanguage,
      ...(this.conversationId && { conversation_id: this.conversationId }),
    });
  }

  async #send(asked) {
    this.trouble = null;
    const hushed = this.interrupt();
    const turn = this.#newTurn({ text: asked.shown });
    await hushed;
    const parameters = this.#parameters(asked.type);
    const visible = asked.type === "text" ? asked.input : `${asked.input.slice(0, SHOWN_AUDIO)}…`;
    await this.#ask(turn, parameters + asked.input, parameters + visible, () => this.#send(asked));
  }

  async #sendLive(body) {
    const turn = this.#newTurn({});
    this.#live = turn;
    await this.#hushed;
    await this.#ask(turn, body, `${this.#parameters("audio")}…`, () => this.#sendSaid(turn));
  }

  /** Send what was said in a turn whose own sending failed. */
  async #sendSaid(turn) {
    await this.letGo();
    if (turn.said) await this.#send({ type: "audio", input: turn.said });
    else this.#complain(new MicrophoneFault("short"));
  }

  #newTurn(told) {
    const before = Math.max(0, ...this.turns.map(({ recordId }) => recordId ?? 0));
    const { speaks, language, answerLanguage } = this.choices ?? {};
    const turn = new Turn({ before, speaks, languages: [language, answerLanguage], ...told });
    this.turns.push(turn);
    this.#onChange();
    return turn;
  }

  #ask(turn, body, shownBody, retry) {
    const headers = { "Content-Type": "application/octet-stream", "Idempotency-Key": turn.key };
    const request = { method: "POST", url: CONVERSE, headers: this.#account.headers(headers), body: shownBody };
    return this.#follow(turn, request, (stream) => stream.ask(CONVERSE, { body, headers }), retry);
  }

  /** Read a turn's stream to its end. */
  async #follow(turn, request, read, retry) {
    if (turn.dropped) return null;
    turn.asked(request);
    turn.stream = new EventStream(this.#account, {
      onEvent: (event) => this.#take(turn, event),
      onLine: (line, after) => this.#line(turn, line, after),
    });
    turn.over = read(turn.stream).then(
      () => null,
      (error) => error,
    );
    const error = await turn.over;
    turn.opens(false); // where it never was
    const again = retry && (() => this.#again(turn, retry));
    if (error !== null && !(error instanceof Left)) {
      turn.failed();
      if (!turn.silenced) this.#player.end();
      this.#complain(error, again);
    } else if (turn.fault !== null) {
      this.#complain(turn.fault, again);
    } else if (turn.running && !turn.silenced) {
      await this.#trying(() => this.#settle(turn)); // another reader has cancelled it
    }
    this.remember();
    this.#onChange();
    return error;
  }

  #line(turn, line, after) {
    turn.line = line;
    if (line === "open") {
      turn.reads(turn.stream.id, after);
      this.remember();
    }
    this.#onChange();
  }

  #take(turn, event) {
    turn.take(event);
    if (turn.kept && this.turns.includes(turn)) this.conversationId = turn.stream.conversationId;
    if (!turn.silenced) this.#sound(event);
    this.#onChange();
  }

  #sound({ name, content, bytes }) {
    if (name === "assistant_output_audio_chunk") {
      if (content.mime_type) this.#player.begin(content.mime_type, content.sample_rate);
      this.#player.push(bytes, content.index);
    } else if (name === "assistant_output_restart") {
      this.#player.stop();
    } else if (name === "end" || name === "error") {
      this.#player.end();
    }
  }

  /** Silence. How much of the answer was heard; null where nothing is known of that. */
  #hush(turn) {
    turn.silenced = true;
    const { state } = this.#player;
    const reads = state === "failed" || (state === "blocked" && turn.heardBefore === 0);
    this.#player.stop();
    this.#onChange();
    return turn.speaks && !reads ? this.#heardOf(turn) : null;
  }

  /** How far the user has heard it: after a reload it is played from its beginning. */
  #heardOf(turn) {
    return Math.max(turn.sounded ? this.#player.playedMs : 0, turn.heardBefore);
  }

  async #interrupted(turn, heard_ms) {
    if (!(await turn.opened)) return; // it has failed meanwhile
    const onLost = () => {
      turn.unended = true;
      this.#onChange();
    };
    await this.#trying(() => cancelStream(this.#account, turn.stream.id, heard_ms, onLost));
    turn.unended = false;
    this.#trying(() => this.#settle(turn)); // the next turn need not wait for that
  }

  /** Show of an interrupted turn what the history keeps of it. */
  async #settle(turn) {
    const last = await Promise.race([turn.over, pause(SETTLE_MS, NOT_YET)]);
    try {
      const { conversationId } = turn.stream;
      let record = null;
      if (turn.recordId !== null) record = await recordOf(this.#account, conversationId, turn.recordId);
      else if (last !== null) record = await recordBehind(this.#account, conversationId, turn.before);
      if (record) turn.asRecorded(record);
      else turn.nothingKept();
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
      if (!(error instanceof Refused && error.status === 404)) throw error;
      [this.turns, this.conversationId] = [[], null]; // deleted, or another user's
    }
    this.#onChange();
  }

  async #pickUp({ id, before, speaks, heard_ms }) {
    this.turns = this.turns.filter(({ recordId }) => recordId <= before);
    const turn = this.#newTurn({ before, speaks, heardBefore: heard_ms });
    const request = { method: "GET", url: `/bp/ai/stream/${id}`, headers: this.#account.headers(), body: "" };
    const error = await this.#follow(turn, request, (stream) => stream.pickUp(id), null);
    if (!(error instanceof Refused)) return;
    this.trouble = null; // it is over for so long that only the history has it
    await this.#trying(() => this.#readHistory());
    this.remember();
  }

  #again(turn, retry) {
    if (turn.recordId === null) this.#drop(turn);
    return retry();
  }

  #drop(turn) {
    turn.dropped = true;
    turn.stream?.leave();
    turn.opens(false);
    this.turns = this.turns.filter((other) => other !== turn);
    this.#onChange();
  }

  #complain(fault, retry = null) {
    this.trouble = { fault, retry: mayHelp(fault) ? retry : null };
    this.#onChange();
  }

  async #trying(what) {
    try {
      await what();
    } catch (error) {
      this.#complain(error);
    }
  }
}
