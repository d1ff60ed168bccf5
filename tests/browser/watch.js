// Runs in every page before its own scripts. Observes the audio of the microphone.
(() => {
  const devices = navigator.mediaDevices; // undefined on a blank page
  if (!devices) return;
  const QUIET_MS = 600;
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
    let loudAt = null;
    const check = () => {
      const now = performance.now();
      analyser.getFloatTimeDomainData(samples);
      if (samples.some((sample) => Math.abs(sample) > LOUD)) {
        loudAt = now;
        onSpeech(now);
      }
      if (loudAt !== null && now - loudAt > QUIET_MS) {
        resolveSpeechEnded();
        context.close();
      } else requestAnimationFrame(check);
    };
    check();
    return stream;
  };

  Object.defineProperty(window, "seen", { value: Object.freeze(seen) });
})();
