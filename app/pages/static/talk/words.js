// Every way in which a turn may fail, in words: what happened, and what to do.

import { html, useLayoutEffect, useRef } from "../vendor/preact.js";
import { Refused, Renewed, Unreachable } from "./account.js";
import { MicrophoneFault } from "./microphone.js";
import { Lost } from "./stream.js";

const MICROPHONE = {
  insecure: ["This browser lets a page listen only on a secure address.", "Open the page by https, or on localhost."],
  refused: [
    "The microphone is not allowed for this page.",
    "Allow it at the address bar or in the browser's settings, then hold the button again. Typing works meanwhile.",
  ],
  missing: ["No microphone was found.", "Connect one, then hold the button again."],
  busy: ["The microphone cannot be opened.", "Another program may be using it: close that, then hold the button again."],
  failed: ["The microphone could not be started.", "Reload the page, or type instead."],
  short: ["That was too short to hear anything.", "Hold the button as long as you speak."],
  early: ["The microphone is ready now.", "Hold the button and speak."],
};

// By error type; a line is found by what the message says besides, the first that fits.
const REFUSALS = [
  [/no speech was heard/, "No speech was heard.", "Hold the button and speak clearly, a little closer to the microphone."],
  [/audio is silent/, "The recording is silent.", "Check which microphone is chosen, and that it is not muted."],
  [/audio is clipped/, "The recording is far too loud.", "Turn the microphone down, or step back from it."],
  [/audio is too short/, "The recording is too short.", "Read the whole text aloud before you let go."],
  [
    /require_sign/,
    "This app asks for signed requests, which a page cannot make.",
    "Turn require_sign off in the app's config of kind auth, or name another app by ?app=… in the address.",
  ],
  [/is draining/, "The server is being stopped or restarted.", "Try again in a moment."],
  [/the server is full/, "The server has as many conversations as it can take.", "Try again in a moment."],
  [/process that had the stream/, "The server process that was answering is gone.", "Ask again."],
  [/has not ended yet|did not answer$/, "The server could not end the answer in time.", "Try again in a moment."],
  [/another turn/, "Another turn of this conversation is running, perhaps in another tab.", "Wait until it ends, or begin a new conversation."],
  [/conversation_id names no/, "This conversation is gone.", "Begin a new conversation."],
  [/stream_id names no/, "The answer can no longer be picked up.", "What was said is in the history: reload the page."],
  [/no longer kept/, "The answer has gone on for too long to be picked up in the middle.", "Reload the page to see what was said."],
  [/no strategy|names no .* strategy/, "The server does not know this strategy any more.", "Reload the page and choose another."],
  [/exceeds/, "That is more than the server takes at once.", "Say it in several turns."],
  [/language(_code)? \S+ is not one of/, "The strategy does not know this language.", "Choose another language, or another strategy."],
];

const TYPES = {
  "account.invalid_session": ["Your session has expired, and logging in again did not help.", "Reload the page."],
  "account.deactivate_pending_user": ["This account is about to be closed.", "Clear this site's data to begin as somebody new."],
  auth_failed: [
    "This app asks for signed requests, which a page cannot make.",
    "Turn require_sign off in the app's config of kind auth, or name another app by ?app=… in the address.",
  ],
  anonymous_login_not_allowed: [
    "This app does not let devices log in.",
    "Turn anonymous_login on in the app's config of kind auth.",
  ],
  app_not_found: ["There is no such app on this server.", "Check ?app=… in the address."],
  not_found: ["This app has no playground.", "Turn playground on in the app's config of kind apps."],
  api_rate_limit: ["That was more than the server allows at once.", "Try again in a moment."],
  config_invalid: ["A config of this app is not right.", "Mend it, as is told here; if it is a strategy's, another may do."],
  all_strategies_failed: ["No strategy could answer.", "Look inside to see why each of them failed; try again, or choose another."],
  backend_unavailable: ["The answer broke off.", "Try again, or choose another strategy."],
  database: ["The server's database does not answer.", "Try again in a moment."],
  redis_service: ["The server's store does not answer.", "Try again in a moment."],
};

const WAITED_FOR = new Set([409, 429]); // another turn, a rate: over in a while
const UNKNOWN = ["The server did not do it.", "Try again."];

/**
 * `{text, advice, detail}` of anything that was thrown, or of the error that an `error` event tells.
 *
 * `detail` is the server's own message, where there is one.
 */
export function inWords(fault) {
  if (fault instanceof MicrophoneFault) return worded(MICROPHONE[fault.kind]);
  if (fault instanceof Lost) {
    return worded(["The connection is lost, and could not be made again.", "See whether the server runs, then reload the page."]);
  }
  if (fault instanceof Renewed) {
    return worded(["Your session had expired: you are logged in again.", "What you said was not sent: try again, or say it anew."]);
  }
  if (fault instanceof Unreachable) {
    return worded(["The server cannot be reached.", "See whether it runs and you are online, then try again."]);
  }
  const type = (fault.errorType ?? fault.error_type ?? "internal").replaceAll(" ", "_");
  const message = fault.message ?? "";
  const found = REFUSALS.find(([sign]) => sign.test(message))?.slice(1) ?? TYPES[type] ?? UNKNOWN;
  const [text, advice] = found;
  return worded([text, fault.retryAfterS ? inTime(advice, fault.retryAfterS) : advice], message);
}

/** Whether the same may go well when it is asked again. */
export function mayHelp(fault) {
  if (fault instanceof Refused) return fault.status >= 500 || WAITED_FOR.has(fault.status);
  return fault.extra?.retryable !== false;
}

const worded = ([text, advice], detail = "") => ({ text, advice, detail });

const inTime = (advice, seconds) => {
  const soon = `in ${seconds} ${seconds === 1 ? "second" : "seconds"}`;
  return advice.includes("in a moment") ? advice.replace("in a moment", soon) : `${advice} It may work ${soon}.`;
};

/** What went wrong, said at once to those who listen too. */
export function Alert({ fault, onRetry, onClose }) {
  const { text, advice, detail } = inWords(fault);
  const shown = useRef(null);
  useLayoutEffect(() => shown.current.scrollIntoView({ block: "nearest" }), [fault]);
  return html`<div class="alert" role="alert" ref=${shown}>
    <p><strong>${text}</strong> ${advice}</p>
    ${detail && html`<small>${detail}</small>`}
    <div class="row">
      ${onRetry && html`<button type="button" onClick=${onRetry}>Try again</button>`}
      ${onClose && html`<button type="button" class="secondary" onClick=${onClose}>Close this message</button>`}
    </div>
  </div>`;
}
