// Runs in every page before its own scripts, and only listens: to what the microphone gives.
(() => {
  const devices = navigator.mediaDevices; // a blank page has none
  if (!devices) return;
  const QUIET_MS = 600;
  const LOUD = 0.02;

  let allSaid;
  const waiting = [];
  const seen = {
    /** Done when all was said: sound, and then none any more. */
    said: new Promise((resolve) => (allSaid = resolve)),
    /** Done when so many milliseconds of sound have come from now on. */
    speech: (ms) => new Promise((resolve) => waiting.push({ ms, resolve, from: null })),
  };

  function heard(now) {
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
    const look = () => {
      const now = performance.now();
      analyser.getFloatTimeDomainData(samples);
      if (samples.some((sample) => Math.abs(sample) > LOUD)) {
        loudAt = now;
        heard(now);
      }
      if (loudAt !== null && now - loudAt > QUIET_MS) {
        allSaid();
        context.close();
      } else requestAnimationFrame(look);
    };
    look();
    return stream;
  };

  Object.defineProperty(window, "seen", { value: Object.freeze(seen) });
})();
