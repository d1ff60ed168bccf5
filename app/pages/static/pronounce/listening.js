// What the user can listen to: a text in the voice of the app, and the own recording or a part of it.

import { useEffect, useRef, useState } from "../vendor/preact.js";

const RATE = 16_000;
const SAMPLE_BYTES = 2;
const MARGIN_S = 0.05; // around a word, whose first and last sound would be cut off otherwise

/** Plays one sound at a time. `playing` is its key. To play it once more while it plays stops it. */
export function usePlayback(onFault) {
  const [playing, setPlaying] = useState(null);
  const audio = useRef(null);
  const wanted = useRef(null); // the last key, also while its sound is fetched
  const stop = () => {
    wanted.current = null;
    audio.current?.pause();
    setPlaying(null);
  };
  useEffect(() => stop, []);
  const play = async (key, soundOf) => {
    const again = wanted.current === key;
    stop();
    if (again) return;
    wanted.current = key;
    setPlaying(key);
    try {
      const url = URL.createObjectURL(await soundOf());
      if (wanted.current === key) {
        audio.current = new Audio(url);
        await ended(audio.current);
      }
      URL.revokeObjectURL(url);
    } catch (error) {
      onFault(error);
    }
    if (wanted.current === key) stop();
  };
  return { playing, play, stop };
}

/** Resolves when a sound has been played or was paused. */
function ended(audio) {
  return new Promise((resolve, reject) => {
    for (const name of ["ended", "pause"]) audio.addEventListener(name, resolve);
    audio.play().catch((error) => (error.name === "AbortError" ? resolve() : reject(error)));
  });
}

/** The app's voice: returns a function that returns a text as a sound. Each text is requested once. */
export function voiceOf(client, strategy) {
  const spoken = new Map();
  return (text) => {
    const known = spoken.get(text) ?? speech(client, strategy, text);
    spoken.set(text, known);
    known.catch(() => spoken.delete(text));
    return known;
  };
}

async function speech(client, strategy, text) {
  const speaking = client.speak(text, { strategies: [strategy] });
  const bytes = await speaking.finish();
  return new Blob([bytes], { type: speaking.mimeType });
}

/** Return a recording, or the part of it in which a word was heard, as a sound. `bytes`: 16 kHz, mono, 16 bits. */
export function recorded(bytes, word = null) {
  if (word === null) return wav(bytes);
  const at = (s) => SAMPLE_BYTES * Math.round(Math.max(0, s) * RATE);
  return wav(bytes.subarray(at(word.from_s - MARGIN_S), at(word.to_s + MARGIN_S)));
}

function wav(samples) {
  const head = new DataView(new ArrayBuffer(44));
  const text = (at, word) => [...word].forEach((letter, index) => head.setUint8(at + index, letter.charCodeAt(0)));
  text(0, "RIFF");
  head.setUint32(4, 36 + samples.length, true);
  text(8, "WAVEfmt ");
  head.setUint32(16, 16, true);
  head.setUint16(20, 1, true); // PCM
  head.setUint16(22, 1, true);
  head.setUint32(24, RATE, true);
  head.setUint32(28, RATE * SAMPLE_BYTES, true);
  head.setUint16(32, SAMPLE_BYTES, true);
  head.setUint16(34, 8 * SAMPLE_BYTES, true);
  text(36, "data");
  head.setUint32(40, samples.length, true);
  return new Blob([head, samples], { type: "audio/wav" });
}
