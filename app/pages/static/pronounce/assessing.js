// The state of one assessment: recording, sending, result.

import { useEffect, useRef, useState } from "../vendor/preact.js";
import { MicrophoneFault } from "../talk/microphone.js";

const SHORTEST_S = 0.3; // the shortest audio that the server accepts

/**
 * `phase`: "ready", "opening", "listening" or "grading". `reading`: `{number, text, result, recording}` of the last
 * assessment, or null. `level`: the user's volume. `microphone` is the class `Microphone`, or one with the same methods.
 */
export function useAssessment(account, microphone) {
  const [phase, setPhase] = useState("ready");
  const [fault, setFault] = useState(null);
  const [reading, setReading] = useState(null);
  const [level, setLevel] = useState(0);
  const recorder = useRef(null);
  const listening = useRef(false); // the current value, not that of the last rendering
  const pending = useRef(null);
  const readings = useRef(0);
  recorder.current ??= new microphone({ onLevel: setLevel });
  useEffect(
    () => () => {
      recorder.current.cancel();
      pending.current?.abort();
    },
    [],
  );

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
      listening.current = await recorder.current.start();
      if (!listening.current) throw new MicrophoneFault("early");
      setPhase("listening");
    });
  const finish = (parameters) =>
    reportingErrors(async () => {
      const { base64, seconds } = await recorder.current.stop();
      if (!listening.current) return; // `begin` reports that it was too early.
      listening.current = false;
      if (seconds < SHORTEST_S) throw new MicrophoneFault("short");
      setPhase("grading");
      setReading(null);
      pending.current = new AbortController();
      const body = JSON.stringify(parameters) + base64;
      const options = { method: "POST", body, signal: pending.current.signal };
      const result = await account.json("/bp/ai/audio/pronunciation", options);
      setReading({ number: (readings.current += 1), text: parameters.data.reference_text, result, recording: base64 });
      setPhase("ready");
    });
  const forget = () => [setFault, setReading].forEach((set) => set(null));
  return { phase, fault, reading, level, begin, finish, report: setFault, forget };
}
