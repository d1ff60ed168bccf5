// Signing in: the operator's token, then a code, and before the first code the set-up of an authenticator.

import { Bar } from "../shared/bar.js";
import { generate } from "../vendor/lean-qr.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { call } from "./api.js";
import { TEXTS } from "./texts.js";

const LINK = "#link=";
const SESSION = "/admin/api/session";
const texts = TEXTS.signIn;

// The code is taken when the page begins, because the address may change before anything is shown. It is not kept in the history.
let link = location.hash.startsWith(LINK) ? location.hash.slice(LINK.length) : null;
if (link !== null) history.replaceState(null, "", location.pathname);

/** Whether the page was opened by a link that signs in and is not used yet. */
export const hasLink = () => link !== null;

/** `ended`: a session has just ended. `onDone(csrf)` is called when the next one has begun. */
export function SignIn({ ended, onDone }) {
  const [token, setToken] = useState("");
  const [code, setCode] = useState("");
  const [step, setStep] = useState({ state: hasLink() ? "link" : "token" });
  const [error, setError] = useState(ended ? texts.ended : "");
  const [busy, setBusy] = useState(false);

  const attempt = async (path, body) => {
    setBusy(true);
    setError("");
    try {
      const answer = await call("POST", path, { body });
      if (answer.csrf) onDone(answer.csrf);
      else setStep(answer);
    } catch (failure) {
      setError(failure.status === 401 && step.state === "token" ? texts.wrongToken : failure.message);
      setCode("");
      if (step.state === "link") setStep({ state: "token" });
    }
    setBusy(false);
  };
  useEffect(() => {
    if (step.state !== "link") return;
    attempt("/dev/console/session", { code: link });
    link = null;
  }, []);
  const submit = (event) => {
    event.preventDefault();
    attempt(SESSION, step.state === "token" ? { token } : { token, code });
  };
  const asksToken = step.state === "token";
  return html`<${Bar} /><div class="card"><main aria-busy=${busy}>
    <h1>${step.state === "needs_authenticator" ? texts.enrol : step.state === "link" ? texts.link : texts.title}</h1>
    ${step.authenticator && html`<${Authenticator} ...${step.authenticator} />`}
    ${step.state !== "link" && html`<form onSubmit=${submit}>
      ${asksToken
        ? html`<label>${texts.token}<input type="password" autocomplete="current-password" required value=${token}
            aria-describedby="help" onInput=${(event) => setToken(event.currentTarget.value)} /></label>
            <small id="help" class="muted">${texts.tokenHelp} <code>${texts.tokenCommand}</code></small>`
        : html`<label>${texts.code}<input inputmode="numeric" autocomplete="one-time-code" required value=${code} ref=${focus}
            aria-describedby="help" onInput=${(event) => setCode(event.currentTarget.value)} /></label>
            <small id="help" class="muted">${texts.codeHelp}</small>`}
      <button disabled=${busy}>${texts.go}</button>
      ${!asksToken && html`<button type="button" class="quiet" onClick=${() => setStep({ state: "token" })}>${texts.back}</button>`}
    </form>`}
    ${error && html`<p class="error" role="alert">${error}</p>`}
  </main></div>`;
}

const focus = (input) => input && document.activeElement === document.body && input.focus();

function Authenticator({ secret, uri }) {
  const canvas = useRef();
  useEffect(() => generate(uri).toCanvas(canvas.current, { on: [0, 0, 0, 255], off: [255, 255, 255, 255] }), [uri]);
  return html`<p>${texts.enrolHelp}</p>
    <canvas class="qr" ref=${canvas} role="img" aria-label=${texts.qr}></canvas>
    <p class="muted">${texts.secret}: <code>${secret.match(/.{4}/g).join(" ")}</code></p>`;
}
