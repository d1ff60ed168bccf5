import { ParleyClient } from "parley-client";
import { VoiceChat } from "parley-client/audio";
import { config } from "./config.js";

const { url, app, signKey, strategy, language } = config;
const [transcript, fault, orb, stop, handsFree] = ["transcript", "fault", "orb", "stop", "hands-free"].map((id) =>
  document.getElementById(id),
);
const LABELS = { idle: "Hold to talk", listening: "Listening…", thinking: "Thinking…", speaking: "Speaking…" };
const FAULTS = {
  refused: "Allow this page to use the microphone.",
  missing: "There is no microphone.",
  busy: "Another program uses the microphone.",
  short: "Hold the button while you speak.",
  early: "The microphone is ready now: hold the button again.",
};

/** The session and the device are stored for one app of one server, so that no other one gets them. */
const keyOf = (name) => `${name} of ${app} at ${url}`;
const store = {
  load: () => JSON.parse(localStorage.getItem(keyOf("session"))),
  save: (session) => localStorage.setItem(keyOf("session"), JSON.stringify(session)),
};
/** Whoever knows the id of a device can sign in as its user. */
function signIn(client) {
  const id = (localStorage[keyOf("device")] ??= crypto.randomUUID());
  return client.signIn("device", { id });
}

const client = new ParleyClient(url, app, { signKey, store, onSessionExpired: signIn });
const voice = new VoiceChat({
  client,
  options: { strategies: [strategy], languageCode: language },
  onTurn(turn) {
    fault.textContent = "";
    lines.set(turn, { user: line("user"), answer: line("answer") });
  },
  onEvent(_, turn) {
    const { user, answer } = lines.get(turn);
    write(user, turn.userInput);
    write(answer, turn.text);
  },
  onState(state) {
    orb.textContent = LABELS[state];
    stop.disabled = state !== "thinking" && state !== "speaking";
  },
  onError(error) {
    fault.textContent = FAULTS[error.kind] ?? error.message;
    handsFree.checked = voice.handsFree;
  },
});

/** The lines of the transcript, by their turn. */
const lines = new Map();

function line(className) {
  return transcript.appendChild(Object.assign(document.createElement("li"), { className, hidden: true }));
}

function write(element, text) {
  if (!text) return;
  element.hidden = false;
  element.textContent = text;
  element.scrollIntoView({ block: "end" });
}

function showLevel() {
  const level = voice.state === "speaking" ? voice.player.level : voice.state === "listening" ? voice.microphone.level : 0;
  document.documentElement.style.setProperty("--level", level.toFixed(2));
  requestAnimationFrame(showLevel);
}

orb.onpointerdown = (event) => {
  orb.setPointerCapture(event.pointerId);
  voice.hold();
};
orb.onpointerup = orb.onpointercancel = () => voice.release();
orb.onkeydown = ({ key, repeat }) => key === " " && !repeat && voice.hold();
orb.onkeyup = ({ key }) => key === " " && voice.release();
stop.onclick = () => voice.interrupt();
handsFree.onchange = () => (handsFree.checked ? voice.startHandsFree() : voice.stopHandsFree());

showLevel();
if (!(await client.session())) await signIn(client).catch((error) => (fault.textContent = error.message));
