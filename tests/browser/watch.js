// Runs in every page before its own scripts. Observes the audio of the microphone.
(() => {
  const devices = navigator.mediaDevices; // undefined on a blank page
  if (!devices) return;
  const QUIET_MS = 600;
  const LONGEST_FRAME_MS = 50; // A busy machine draws late. What was not listened to is not counted as quiet.
  const LOUD = 0.02;

  let resolveSpeechEnded;
  const waiting = [];
  const seen = {
    /** Resolves when the speech is followed by silence. */
    speechEnded: new Promise((resolve) => (resolveSpeechEnded = resolve)),
    /** Returns a promise that resolves after `ms` milliseconds of speech from now on. */
    speech: (ms) => new Promise((resolve) => waiting.push({ ms, resolve, from: null })),
  };

  function onSpeech(now) {
    for (const one of waiting) {
      one.from ??= now;
      if (now - one.from >= one.ms) one.resolve();
    }
  }

  const open = devices.getUserMedia.bind(devices);
  devices.getUserMedia = async (constraints) => {
    const stream = await open(constraints);
    const context = new AudioContext();
    const analyser = context.createAnalyser();
    context.createMediaStreamSource(stream.clone()).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    let [heard, quiet_ms, before] = [false, 0, performance.now()];
    const check = () => {
      const now = performance.now();
      quiet_ms += Math.min(now - before, LONGEST_FRAME_MS);
      before = now;
      analyser.getFloatTimeDomainData(samples);
      if (samples.some((sample) => Math.abs(sample) > LOUD)) {
        [heard, quiet_ms] = [true, 0];
        onSpeech(now);
      }
      if (heard && quiet_ms > QUIET_MS) {
        resolveSpeechEnded();
        context.close();
      } else requestAnimationFrame(check);
    };
    check();
    return stream;
  };

  Object.defineProperty(window, "seen", { value: Object.freeze(seen) });
})();
