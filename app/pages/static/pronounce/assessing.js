// The state of one assessment: recording, sending, result.

import { useEffect, useRef, useState } from "../vendor/preact.js";
import { MicrophoneFault } from "../client/parley-client.js";

const SHORTEST_S = 0.3; // the shortest audio that the server accepts

/**
 * `phase`: "ready", "opening", "listening" or "grading". `reading`: `{number, text, result, recording}` of the last
 * assessment, or null. Its recording is 16 kHz, mono, 16 bits.
 */
export function useAssessment(client, microphone) {
  const [phase, setPhase] = useState("ready");
  const [fault, setFault] = useState(null);
  const [reading, setReading] = useState(null);
  const held = useRef(false); // the current value, not that of the last rendering
  const recording = useRef(null);
  const pending = useRef(null);
  const readings = useRef(0);
  useEffect(() => () => pending.current?.abort(), []);

  const reportingErrors = async (work) => {
    try {
      await work();
    } catch (error) {
      if (error.name === "AbortError") return;
      setFault(error);
      setPhase("ready");
    }
  };
  const begin = () =>
    reportingErrors(async () => {
      setFault(null);
      setPhase("opening");
      held.current = true;
      await microphone.open();
      if (!held.current) throw new MicrophoneFault("early");
      recording.current = microphone.record();
      setPhase("listening");
    });
  const finish = (options) =>
    reportingErrors(async () => {
      held.current = false;
      const read = recording.current;
      recording.current = null;
      if (read === null) return; // `begin` reports that it was too early.
      await read.stop();
      if (read.seconds < SHORTEST_S) throw new MicrophoneFault("short");
      setPhase("grading");
      setReading(null);
      pending.current = new AbortController();
      const result = await client.assess(read, { ...options, signal: pending.current.signal });
      setReading({ number: (readings.current += 1), text: options.referenceText, result, recording: read.bytes });
      setPhase("ready");
    });
  const forget = () => [setFault, setReading].forEach((set) => set(null));
  return { phase, fault, reading, begin, finish, report: setFault, forget };
}
