// Lets detectors of voices hear recordings: `node hear.mjs FOLDER`, with `recordings.json` and the files that it names.
// `--over-answer`: only the detector of the client, by the rules of the client while an answer plays.
// Prints one JSON object per detector: {name, version, downloadBytes, cpu, heard: [[[change, ms], …], …]}.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { gzipSync } from "node:zlib";
import loadFvad from "@echogarden/fvad-wasm";
import loadTen from "@gooney-001/ten-vad-lib";
import * as ort from "onnxruntime-web/wasm";
import { SileroVoiceDetector, Utterances } from "../../clients/typescript/dist/audio/index.js";
import { NearVoice } from "../../clients/typescript/dist/audio/near_voice.js";

const RATE = 16_000;
const VOICE = 0.5; // the probability from which a frame counts as a voice
const [folder, mode] = process.argv.slice(2);
const overAnswer = mode === "--over-answer";
const { Silero } = createRequire(import.meta.url)("@ricky0123/vad-web/dist/models/silero.js");
const client = new URL("../../clients/typescript/dist/audio/", import.meta.url);
const modules = new URL("node_modules/", import.meta.url);
const versionOf = (name) => JSON.parse(readFileSync(new URL(`${name}/package.json`, modules))).version;
const downloadBytes = (base, names) =>
  names.reduce((total, name) => total + gzipSync(readFileSync(new URL(name, base)), { level: 9 }).length, 0);

/** What makes a detector: `{frameSamples, isVoice(frame), free()}`, which may be asynchronous. */
const DETECTORS = [
  {
    name: "`parley-client/audio`: Silero v6 in 8 bits",
    version: "",
    downloadBytes: downloadBytes(client, ["silero.bin", "voice_detector.js", "layers.js", "spectrum.js"]),
    load: () => SileroVoiceDetector.load(arrayOf(readFileSync(new URL("silero.bin", client)))),
  },
  {
    name: "`@ricky0123/vad-web`: Silero v5 in onnxruntime-web",
    version: versionOf("@ricky0123/vad-web"),
    downloadBytes: downloadBytes(modules, [
      ...["bundle.min.js", "vad.worklet.bundle.min.js", "silero_vad_v5.onnx"].map((name) => `@ricky0123/vad-web/dist/${name}`),
      ...["wasm", "mjs"].map((kind) => `onnxruntime-web/dist/ort-wasm-simd-threaded.${kind}`),
    ]),
    load: silero,
  },
  {
    name: "`@echogarden/fvad-wasm`: WebRTC's detector, mode 3",
    version: versionOf("@echogarden/fvad-wasm"),
    downloadBytes: downloadBytes(modules, ["fvad.wasm", "fvad.js"].map((name) => `@echogarden/fvad-wasm/${name}`)),
    load: fvad,
  },
  {
    name: "`@gooney-001/ten-vad-lib`: TEN VAD",
    version: versionOf("@gooney-001/ten-vad-lib"),
    downloadBytes: downloadBytes(modules, ["ten_vad.wasm", "ten_vad.js"].map((name) => `@gooney-001/ten-vad-lib/${name}`)),
    load: ten,
  },
];

const arrayOf = ({ buffer, byteOffset, length }) => buffer.slice(byteOffset, byteOffset + length);

async function silero() {
  ort.env.wasm.numThreads = 1;
  const model = readFileSync(new URL("@ricky0123/vad-web/dist/silero_vad_v5.onnx", modules));
  const made = await Silero.new(ort, async () => arrayOf(model));
  return {
    frameSamples: 512,
    isVoice: async (frame) => (await made.process(Float32Array.from(frame, (sample) => sample / 0x8000))).isSpeech >= VOICE,
    free: () => made.release(),
  };
}

async function fvad() {
  const vad = await loadFvad();
  const frameSamples = 480; // the longest that it accepts
  const [detector, audio] = [vad._fvad_new(), vad._malloc(2 * frameSamples)];
  vad._fvad_set_mode(detector, 3); // the one that takes the fewest sounds for a voice
  vad._fvad_set_sample_rate(detector, RATE);
  return {
    frameSamples,
    isVoice: (frame) => {
      vad.HEAP16.set(frame, audio / 2);
      return vad._fvad_process(detector, audio, frameSamples) === 1;
    },
    free: () => vad._fvad_free(detector),
  };
}

async function ten() {
  const vad = await loadTen();
  const frameSamples = 256;
  const [handle, audio, probability, flag] = [4, 2 * frameSamples, 4, 4].map((bytes) => vad._malloc(bytes));
  vad._ten_vad_create(handle, frameSamples, VOICE);
  const detector = vad.getValue(handle, "i32");
  return {
    frameSamples,
    isVoice: (frame) => {
      vad.HEAP16.set(frame, audio / 2);
      vad._ten_vad_process(detector, audio, frameSamples, probability, flag);
      return vad.getValue(flag, "i32") === 1;
    },
    free: () => vad._ten_vad_destroy(handle),
  };
}

/** Return the changes of a recording, with how much audio had been heard by then. */
async function hear(detector, samples) {
  const { frameSamples } = detector;
  const near = new NearVoice();
  const utterances = new Utterances({ frameMs: (1000 * frameSamples) / RATE });
  const changes = [];
  for (let at = 0; at + frameSamples <= samples.length; at += frameSamples) {
    const frame = samples.subarray(at, at + frameSamples);
    const voiced = await detector.isVoice(frame);
    const loud = !overAnswer || near.push(frame, { overAnswer }); // Otherwise, detectors are compared by themselves.
    const change = utterances.push(voiced && loud, { overAnswer });
    if (change) changes.push([change, (1000 * (at + frameSamples)) / RATE]);
  }
  return changes;
}

const recordings = JSON.parse(readFileSync(`${folder}/recordings.json`)).map((file) => {
  return new Int16Array(arrayOf(readFileSync(`${folder}/${file}`)));
});
const seconds = recordings.reduce((total, { length }) => total + length / RATE, 0);

for (const { load, ...described } of overAnswer ? DETECTORS.slice(0, 1) : DETECTORS) {
  const [heard, used] = [[], { user: 0, system: 0 }];
  for (const samples of recordings) {
    const detector = await load();
    const before = process.cpuUsage();
    heard.push(await hear(detector, samples));
    const spent = process.cpuUsage(before);
    used.user += spent.user;
    used.system += spent.system;
    await detector.free();
  }
  const cpu = (used.user + used.system) / 1e6 / seconds;
  process.stdout.write(`${JSON.stringify({ ...described, cpu, heard })}\n`);
}
process.exit(); // The runtime of models leaves timers.
