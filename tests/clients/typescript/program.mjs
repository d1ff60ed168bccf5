// Runs what a test asks for: one JSON object per line on stdin, and one per line on stdout for each result or event.

import { request } from "node:http";
import { createInterface } from "node:readline";
import * as parley from "../../../clients/typescript/dist/index.js";
import { SileroVoiceDetector, Utterances } from "../../../clients/typescript/dist/audio/index.js";
import { NearVoice } from "../../../clients/typescript/dist/audio/near_voice.js";
import { Recording } from "../../../clients/typescript/dist/audio/recording.js";
import { ServerClient, serverToken, verifyWebhook } from "../../../clients/typescript/dist/server/index.js";
import { Digest } from "../../../clients/typescript/dist/streams/digest.js";

const clients = new Map();
const turns = new Map();
const stores = new Map();
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const bytesOf = (base64) => new Uint8Array(Buffer.from(base64, "base64"));

/** What a test sends piece by piece. Null ends it. */
class Pieces {
  #ready = [];
  #wake = () => {};
  closed = false;

  push(piece) {
    this.#ready.push(piece);
    this.#wake();
  }

  async *[Symbol.asyncIterator]() {
    try {
      for (;;) {
        while (this.#ready.length === 0) await new Promise((resolve) => (this.#wake = resolve));
        const piece = this.#ready.shift();
        if (piece === null) return;
        yield piece;
      }
    } finally {
      this.closed = true;
    }
  }
}

/** A `fetch` that delivers a response only when it is complete, as that of React Native does. */
function completeFetch(url, { method, headers, body, signal }) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers }, async (response) => {
      const pieces = await response.toArray();
      const bytes = Buffer.concat(pieces);
      const status = response.statusCode;
      const found = { get: (name) => response.headers[name.toLowerCase()] ?? null };
      resolve({ ok: status < 300, status, headers: found, text: async () => bytes.toString(), arrayBuffer: async () => bytes });
    });
    signal?.addEventListener("abort", () => sent.destroy());
    sent.on("error", reject).end(body ?? undefined);
  });
}

const STEPS = {
  /** Remove what React Native does not have. */
  forgetStreams() {
    delete globalThis.ReadableStream;
    delete globalThis.crypto.constructor.prototype.subtle;
    for (const name of ["reason", "throwIfAborted"]) delete AbortSignal.prototype[name];
  },

  /** `stored`: keeps the session, in a store that clients with the same value share. */
  client({ name, url, app = "default", options = {}, again = null, stored = false, complete = false }) {
    if (complete) options = { ...options, fetch: completeFetch, liveUpload: false };
    const kept = stores.get(stored) ?? [];
    stores.set(stored, kept);
    const store = { load: () => kept.at(-1) ?? null, save: (session) => void kept.push(session) };
    const onSessionExpired = again && ((client) => client.signIn(...again));
    clients.set(name, new parley.ParleyClient(url, app, { ...options, onSessionExpired, ...(stored && { store }) }));
  },

  /** An app server, which acts for `user`. */
  appServer({ name, url, app = "default", key, user }) {
    const server = new ServerClient(url, app, key);
    clients.set(name, server);
    clients.set("user", server.user(user));
  },

  token({ kid, alg, key, app_id, now, lifetime_s, user_id, ...options }) {
    return serverToken({ kid, alg, key }, app_id, { ...options, nowS: now, lifetimeS: lifetime_s, userId: user_id });
  },

  webhook({ headers, body, secrets, now }) {
    return verifyWebhook(headers, body, secrets, { nowS: now });
  },

  /** Call a method of a client, such as `wallet.createOrder`. */
  async call({ client = "user", method, args = [] }) {
    const path = method.split(".");
    const last = path.pop();
    const target = path.reduce((object, name) => object[name], clients.get(client));
    return (await target[last](...args)) ?? null;
  },

  /**
   * Read a stream. Its events are reported as they arrive. `says`: the input comes by steps `piece`, as that of an
   * assessment does.
   */
  async read({ client = "user", name = "turn", options = {}, leaveAfter = null, ...given }) {
    const { speak = null, resume = null, says = null, assess = false } = given;
    const pieces = new Pieces();
    const user = clients.get(client);
    if (assess) {
      turns.set(name, { pieces });
      return user.assess(pieces, options);
    }
    const connections = [];
    const onConnection = (...change) => connections.push(change);
    const said = () => user.converse({ ...options, ...(says && { [says]: pieces }), onConnection });
    const heard = () => (speak ? user.speak(speak, options) : user.resume(resume, { onConnection }));
    const stream = speak || resume ? heard() : said();
    turns.set(name, { stream, pieces });
    for await (const { bytes, ...event } of stream) {
      say({ turn: name, event });
      if (event.name === leaveAfter) break;
    }
    const { text, userInput, end, streamId, conversationId, audio: spoken, mimeType } = stream;
    const sound = spoken && { audio: Buffer.from(spoken).toString("base64"), mimeType };
    return { text, userInput, end, streamId, conversationId, connections, closed: pieces.closed, ...sound };
  },

  /** Call all methods of a client and its parts that send a request, with examples of their arguments. */
  async everything({ client = "user" }) {
    const own = clients.get(client);
    const parts = Object.values(own).filter((part) => part?.constructor?.name && typeof part === "object");
    for (const target of [own, ...parts]) {
      for (const method of methodsOf(target)) await target[method](...(ARGUMENTS[method] ?? EXAMPLES)).catch(onlyParley);
    }
    if (!own.converse) return;
    const options = { strategies: ["one"], languageCode: "en-US" };
    for (const stream of [own.converse({ ...options, text: "Hello" }), own.speak("Hello", options), own.resume("one")]) {
      await stream.finish().catch(onlyParley);
      await stream.interrupt?.();
    }
  },

  /** Take steps of `clients/cases/uses.json` with a stream. Return what the last one has read. */
  async use({ client = "user", steps, options, speak = null }) {
    const user = clients.get(client);
    const stream = speak ? user.speak(speak, options) : user.converse(options);
    const ended = async (events) => {
      let last = null;
      for await (const event of events) last = event;
      return last?.content.finish_reason ?? null;
    };
    const take = {
      begin: () => void stream[Symbol.asyncIterator](),
      next: () => stream[Symbol.asyncIterator]().next(),
      leave: () => stream[Symbol.asyncIterator]().return(),
      rest: () => ended(stream[Symbol.asyncIterator]()),
      read: () => ended(stream),
      finish: async () => (await stream.finish(), stream.end.finish_reason),
      interrupt: () => stream.interrupt(),
    };
    let seen = null;
    for (const step of steps) seen = await take[step]();
    return seen ?? null;
  },

  piece({ name = "turn", piece = null }) {
    turns.get(name).pieces.push(piece);
  },

  drop({ name = "turn" }) {
    turns.get(name).stream.dropConnection();
  },

  text({ name = "turn" }) {
    return turns.get(name).stream.text;
  },

  /** Interrupt a stream that has begun before. */
  async interruptStream({ client = "user", streamId, heardMs }) {
    await clients.get(client).resume(streamId).interrupt({ heardMs });
  },

  /** Read a turn without input, and without a stream if the server sends none. */
  async converse({ client = "user", ...options }) {
    const said = { strategies: ["one"], languageCode: "en-US", text: "Hello" };
    await clients.get(client).converse({ ...said, ...options }).finish();
  },

  async interrupt({ name = "turn", ...options }) {
    await turns.get(name).stream.interrupt(options);
  },

  sign({ key, method, target, body, t, nonce }) {
    const request = { method, pathAndQuery: target, body: new TextEncoder().encode(body) };
    return parley.signRequest(key, request, { timeS: t, nonce });
  },

  sse({ pieces }) {
    const parser = new parley.SseParser();
    const messages = pieces.flatMap((piece) => parser.feed(Uint8Array.from(piece, (letter) => letter.charCodeAt(0))));
    return messages.map(({ id, name, data }) => [id, name, data]);
  },

  digest({ events, digest }) {
    const own = new Digest();
    for (const [name, content] of events) {
      if (name === "assistant_output_chunk") own.addText(content.text);
      else if (content?.audio !== undefined) own.addAudio(bytesOf(content.audio));
    }
    return own.matches(digest);
  },

  /** Return the probabilities of a voice in the frames of 16-bit samples. */
  async voices({ weights, pcm }) {
    const detector = await SileroVoiceDetector.load(weights.buffer);
    const samples = new Int16Array(pcm.buffer);
    const probabilities = [];
    for (let at = 0; at + detector.frameSamples <= samples.length; at += detector.frameSamples) {
      probabilities.push(detector.probability(samples.subarray(at, at + detector.frameSamples)));
    }
    return probabilities;
  },

  /** Return what a reader of a recording gets from its begin on, and another one after its end. */
  async recording({ before, pieces, maxSeconds = Infinity, end = null }) {
    const source = { flush: async () => recording.add(pieces.at(-1)), release: () => {} };
    const recording = new Recording(source, before, maxSeconds);
    const read = async () => {
      const got = [];
      for await (const piece of recording) got.push(...piece);
      return got;
    };
    const first = read().catch(kindOf);
    for (const piece of pieces.slice(0, -1)) recording.add(piece);
    if (end) await recording[end]();
    const ended = await recording.ended;
    return { ended, first: await first, again: await read().catch(kindOf), seconds: recording.seconds };
  },

  /** Return in how many frames of 16-bit samples a voice would be near. */
  near({ pcm, overAnswer, frameSamples = 512 }) {
    const near = new NearVoice();
    const samples = new Int16Array(pcm.buffer);
    const frames = Array.from({ length: Math.floor(samples.length / frameSamples) }, (_, at) => at * frameSamples);
    return frames.filter((at) => near.push(samples.subarray(at, at + frameSamples), { overAnswer })).length;
  },

  /** Return the changes that frames make: `[count, voiced, overAnswer]`. */
  utterances({ options, frames }) {
    const utterances = new Utterances(options);
    return frames.flatMap(([count, voiced, overAnswer]) =>
      Array.from({ length: count }, () => utterances.push(voiced, { overAnswer })).filter(Boolean),
    );
  },
};

const EXAMPLES = ["one", "two", {}];
/** The arguments of methods that `EXAMPLES` does not suit. */
const ARGUMENTS = {
  assess: [new Uint8Array(4), { strategy: "one", referenceText: "Hello" }],
  profiles: [["one"]],
  upload: [new Uint8Array(4)],
  withdraw: ["one", 1, { startTime: new Date() }],
};
const NO_REQUESTS = ["constructor", "converse", "speak", "resume", "session", "refreshSession"];

function methodsOf(target) {
  const found = [];
  for (let one = Object.getPrototypeOf(target); one !== Object.prototype; one = Object.getPrototypeOf(one)) {
    found.push(...Object.getOwnPropertyNames(one));
  }
  const asks = (name) => !NO_REQUESTS.includes(name) && !(name === "user" && target instanceof ServerClient);
  return [...new Set(found)].filter((name) => typeof target[name] === "function" && asks(name));
}

function onlyParley(error) {
  if (!(error instanceof parley.ParleyError)) throw error;
}

function kindOf(error) {
  onlyParley(error);
  return error.kind;
}

function shown(error) {
  const { name, message, stack, errorType, status, extra, requestId, retryAfter, retryable, bpAuth } = error;
  const fields = { errorType, status, extra, requestId, retryAfter, retryable, bpAuth };
  return { name, message, ...(errorType ? fields : { stack }) };
}

/** Bytes are `{"bytes": "<Base64>"}`, times `{"date": "<RFC 3339>"}`, and numbers that JSON has not `{"number": "NaN"}`. */
function read(_, value) {
  if (typeof value?.bytes === "string") return bytesOf(value.bytes);
  if (typeof value?.number === "string") return Number(value.number);
  return typeof value?.date === "string" ? new Date(value.date) : value;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, step, ...given } = JSON.parse(line, read);
  Promise.resolve()
    .then(() => STEPS[step](given))
    .then((result) => say({ id, result: result ?? null }))
    .catch((error) => say({ id, error: shown(error) }));
}
