// Error messages: what happened, and what to do. In development, users are also operators.

import { development } from "../shared/bar.js";
import { html, useEffect, useLayoutEffect, useRef } from "../vendor/preact.js";
import { ConnectionLost, MicrophoneFault, ParleyError } from "../client/parley-client.js";
import { reasonOf } from "../inside/reasons.js";
import { IconButton } from "./icons.js";

const HINTS = new Set(["short", "early"]); // faults that only say how the button is used
const HINT_MS = 5_000;

const MICROPHONE = {
  insecure: ["This browser allows the microphone only on secure pages.", "Open the page with https, or on localhost."],
  refused: [
    "The microphone is not allowed for this page.",
    "Allow it at the address bar or in the browser's settings, then try again. You can also type.",
  ],
  missing: ["No microphone was found.", "Connect a microphone, then try again."],
  busy: ["The microphone cannot be opened.", "Another program may be using it. Close that program, then try again."],
  lost: ["The microphone was disconnected.", "Connect it again, and turn hands-free on."],
  failed: ["The microphone could not be started.", "Reload the page, or type instead."],
  short: ["The recording is too short.", "Hold the button while you speak."],
  early: ["The microphone is ready now.", "Hold the button and speak."],
};

const UNSIGNED = [
  "This app requires signed requests, which a page cannot create.",
  "Turn require_sign off in the app's config of kind auth, or select another app with ?app=… in the address.",
];

// Texts by a pattern of the server's message. The first match is used; they take precedence over `TYPES`.
const MESSAGES = [
  [/no speech was heard/, "No speech was heard.", "Speak clearly, a little closer to the microphone."],
  [/audio is silent/, "The recording is silent.", "Check that the right microphone is selected and not muted."],
  [/audio is clipped/, "The recording is far too loud.", "Turn the microphone down or move away from it."],
  [/audio is too short/, "The recording is too short.", "Read the whole text aloud before you release the button."],
  [/require_sign/, ...UNSIGNED],
  [/is draining/, "The server is being stopped or restarted.", "Try again in a moment."],
  [/the server is full/, "The server is at its limit of conversations.", "Try again in a moment."],
  [/process that ran the stream/, "The server process that produced the answer has failed.", "Try again."],
  [/has not ended yet|did not answer$/, "The server could not end the answer in time.", "Try again in a moment."],
  [/another turn/, "Another turn of this conversation is running, perhaps in another tab.", "Wait until it ends, or start a new conversation."],
  [/conversation [0-9a-f]{32} does not exist/, "This conversation no longer exists.", "Start a new conversation."],
  [/stream [0-9a-f]{32} does not exist/, "The answer can no longer be resumed.", "Reload the page to see the history."],
  [/no longer kept/, "The answer is too long to be resumed at this point.", "Reload the page to see the history."],
  [/strateg(y|ies) .* do(es)? not exist/, "This strategy no longer exists.", "Reload the page and choose another one."],
  [/exceeds/, "The input is longer than the server allows.", "Split it into several turns."],
  [/language(_code)? \S+ is not one of/, "The strategy does not support this language.", "Choose another language or another strategy."],
];

// A session that ended while its answer arrived. The next request logs in again.
const ENDED_SESSION = "account.invalid_session";
const ENDED = ["Your session was ended in the middle of this answer.", "Send it again."];

const TYPES = {
  [ENDED_SESSION]: ["Your session has expired, and logging in again failed.", "Reload the page."],
  "account.deactivate_pending_user": ["This account is scheduled for deactivation.", "Clear this site's data to start as a new user."],
  auth_failed: UNSIGNED,
  anonymous_login_not_allowed: [
    "This app does not allow anonymous login.",
    "Turn anonymous_login on in the app's config of kind auth.",
  ],
  app_not_found: ["This server has no such app.", "Check ?app=… in the address."],
  not_found: ["This app has no playground.", "Turn playground on in the app's config of kind apps."],
  api_rate_limit: ["You have reached a rate limit of the server.", "Try again in a moment."],
  config_invalid: ["A config of this app is invalid.", "Correct it as described below, or choose another strategy."],
  all_strategies_failed: ["No strategy could answer.", "Try again, or choose another strategy."],
  backend_unavailable: ["The answer broke off.", "Try again, or choose another strategy."],
  database: ["The server cannot reach its database.", "Try again in a moment."],
  redis_service: ["The server cannot reach Valkey.", "Try again in a moment."],
};

// In production, these replace the texts above: only the operators of the server can remove the causes.
const LATER = "Try again in a moment. If it happens again, tell the makers of this app.";
const FOR_USERS = {
  auth_failed: ["This page cannot be used with this app.", "Use the app itself instead."],
  anonymous_login_not_allowed: ["This app is only for people with an account.", "Sign in with the app itself."],
  app_not_found: ["There is no such app here.", "Check the address of this page."],
  not_found: ["This app cannot be tried here.", "Use the app itself instead."],
  config_invalid: ["Something in this app is not set up correctly.", "Tell the makers of this app."],
  all_strategies_failed: ["There is no answer at the moment.", "Try again in a moment, or choose another strategy in the settings."],
  database: ["The server has a problem.", LATER],
  redis_service: ["The server has a problem.", LATER],
};
const UNREACHABLE = {
  text: "The server cannot be reached.",
  advice: `Check that ${development ? "it is running and that " : ""}you are online, then try again.`,
  detail: "",
};

const WAITED_FOR = new Set([409, 429]); // another turn or a rate limit, which end after a while
const UNKNOWN = ["The request failed.", "Try again."];

/**
 * Return `{text, advice, detail}` for an exception.
 *
 * `detail` is the message from the server, if there is one that helps its reader.
 */
export function userMessage(fault) {
  if (fault instanceof MicrophoneFault) return described(MICROPHONE[fault.kind] ?? MICROPHONE.failed);
  if (fault instanceof ConnectionLost) return UNREACHABLE;
  const type = fault.errorType ?? "internal";
  const forUsers = development ? undefined : FOR_USERS[type];
  const message = forUsers ? "" : (fault.message ?? "");
  const texts = forUsers ?? MESSAGES.find(([pattern]) => pattern.test(message))?.slice(1) ?? TYPES[type] ?? UNKNOWN;
  const [text, advice] = endedSession(fault) ? ENDED : texts;
  const [attempt] = fault.extra?.attempts ?? [];
  if (attempt) return describedBy(attempt, text);
  return described([text, fault.retryAfter ? withDelay(advice, fault.retryAfter) : advice], message);
}

/** Return whether a retry of the same request may succeed. */
export function retryMayHelp(fault) {
  if (!(fault instanceof ParleyError)) return false;
  if (endedSession(fault)) return true;
  if (fault.status !== null) return fault.status >= 500 || WAITED_FOR.has(fault.status);
  return fault.extra.retryable !== false;
}

const endedSession = ({ errorType, status }) => errorType === ENDED_SESSION && status === null;

/** The first attempt stands for all of them: the others are its fallbacks, and often fail for the same reason. */
function describedBy(attempt, text) {
  const { text: reason, advice } = reasonOf(attempt);
  return described([`${text} ${reason}`, advice], development ? attempt.message : "");
}

const described = ([text, advice], detail = "") => ({ text, advice, detail });

const withDelay = (advice, seconds) => {
  const delay = `in ${seconds} ${seconds === 1 ? "second" : "seconds"}`;
  return advice.includes("in a moment") ? advice.replace("in a moment", delay) : `${advice} It may work ${delay}.`;
};

/** An error message. Screen readers announce it immediately. `onInside` opens the details of the request, if there are any. */
export function Alert({ fault, onRetry, onInside, onClose }) {
  const { text, advice, detail } = userMessage(fault);
  const shown = useRef(null);
  const isHint = fault instanceof MicrophoneFault && HINTS.has(fault.kind);
  useLayoutEffect(() => shown.current.scrollIntoView({ block: "nearest" }), [fault]);
  useEffect(() => {
    const hiding = isHint && setTimeout(onClose, HINT_MS);
    return () => clearTimeout(hiding);
  }, [fault]);
  return html`<div class=${isHint ? "alert hint" : "alert"} role="alert" ref=${shown}>
    ${onClose && html`<${IconButton} icon="close" label="Close this message" onAct=${onClose} />`}
    <p><strong>${text}</strong> ${advice}</p>
    ${detail && html`<small>${detail}</small>`}
    ${(onRetry || onInside) &&
    html`<div class="row">
      ${onRetry && html`<button type="button" onClick=${onRetry}>Try again</button>`}
      ${onInside && html`<button type="button" class="quiet" aria-label="Look inside this failure" onClick=${onInside}>Look inside</button>`}
    </div>`}
  </div>`;
}
