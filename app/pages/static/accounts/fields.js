// The parts of forms: fields whose values the page keeps, and buttons that send requests.

import { html } from "../vendor/preact.js";
import { outcome, succeeded } from "./exchanges.js";

export function Field({ accounts, name, label, type = "text", hint, ...more }) {
  return html`<label class="field">
    <span>${label}</span>
    <input
      type=${type}
      name=${name}
      value=${accounts.values[name] ?? ""}
      autocomplete="off"
      autocapitalize="off"
      spellcheck=${false}
      onInput=${(event) => accounts.set(name, event.currentTarget.value)}
      ...${more}
    />
    ${hint && html`<small>${hint}</small>`}
  </label>`;
}

/** A button that uses aria-disabled, so that it keeps the focus. `reason`: why it cannot be used. */
export function Action({ accounts, label, onAct, primary = false, reason = "" }) {
  const disabled = accounts.busy || reason !== "";
  return html`<button
    type=${primary ? "submit" : "button"}
    class=${primary ? "" : "quiet"}
    aria-disabled=${disabled ? "true" : null}
    title=${reason || null}
    onClick=${(event) => {
      event.preventDefault();
      if (!disabled) onAct();
    }}
  >
    ${label}
  </button>`;
}

export const SignUp = ({ accounts, body }) =>
  html`<${Action}
    accounts=${accounts}
    label="Sign up"
    onAct=${() => accounts.logIn(body, { name: "Sign up", path: "/bp/user/signup" })}
  />`;

/** A part of a flow: fields and actions. Enter presses the primary action. */
export function Step({ title, children }) {
  return html`<form class="step" onSubmit=${(event) => event.preventDefault()} aria-label=${title}>
    ${title && html`<h3>${title}</h3>`} ${children}
  </form>`;
}

/** The outcome of the last request, and the offer of a `bp_auth` after a conflict. */
export function Result({ accounts }) {
  const { result, conflict } = accounts;
  const state = !result || result.status === null ? "waiting" : succeeded(result) ? "good" : "bad";
  return html`
    <p role="status" class=${`result result-${state}`}>
      ${result && html`<span class="mark" aria-hidden="true"></span>${sentence(result)}`}
    </p>
    ${conflict &&
    html`<div class="conflict">
      <p>${conflictText(conflict)} <code>bp_auth</code> logs in with it once, without a new sign-in.</p>
      <${Action}
        accounts=${accounts}
        primary
        label="Log in with bp_auth"
        onAct=${() => accounts.logIn({ bp_auth_token: conflict.token }, { name: "Log in with bp_auth" })}
      />
    </div>`}
  `;
}

/** Return the outcome of a request. If it does not say what was done, the name of the request comes first. */
const sentence = (exchange) => (succeeded(exchange) && exchange.done ? "" : `${exchange.name}: `) + outcome(exchange);

function conflictText({ type }) {
  if (type === "account.sp_linked_platform") return "The current user has an identity of this platform already.";
  if (type === "account.user_already_bound_email") return "The current user has an address already.";
  return "It belongs to another user.";
}
