// Verifies a proof once with the draft of a sign-in platform.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { configPath, write } from "./api.js";
import { Facts, Note } from "./parts.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.signInTrial;
const DELAY_MS = 400;
const SHORT = new Set(["id", "open_id", "nonce", "player_id", "team_player_id", "timestamp", "expiration_date"]);
const NUMBERS = new Set(["timestamp", "expiration_date"]);
const REFUSED = "account.sp_auth_failed:";

/** Returns the fields of a proof that the draft reads: `{provider, fields}`, or `{error}`. */
function useFields(config, value) {
  const [state, setState] = useState({});
  useEffect(() => {
    let current = true;
    const timer = setTimeout(async () => {
      const path = `/sign_in/${encodeURIComponent(config.app)}/${encodeURIComponent(config.name)}/proof_fields`;
      const next = await write("POST", path, { value }).catch((error) => ({ error: error.message }));
      if (current) setState(next);
    }, DELAY_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [JSON.stringify(value)]);
  return state;
}

export function SignIn({ config, value }) {
  const { fields, error: invalid } = useFields(config, value);
  const [sent, setSent] = useState({});
  const [state, setState] = useState({});
  const run = async (event) => {
    event.preventDefault();
    setState({ running: true });
    const given = fields.filter(({ name }) => sent[name]).map(({ name }) => [name, NUMBERS.has(name) ? Number(sent[name]) : sent[name]]);
    const body = { value, proof: { [config.name]: Object.fromEntries(given) } };
    setState(await write("POST", `${configPath(config)}/try`, body).then((answer) => ({ answer }), (error) => ({ error: error.message })));
  };
  const isOneOf = fields && !fields.some(({ required }) => required);
  return html`<div class="trial"><p class="lead">${texts.lead} ${fields?.some(({ name }) => name === "code") && texts.codes}</p>
    ${invalid && html`<${Note} tone="bad" title=${texts.noFields}>${invalid}<//>`}
    ${fields && html`<form onSubmit=${run}>
      ${fields.map((field) => html`<${Field} key=${field.name} ...${field} isOneOf=${isOneOf} value=${sent[field.name]} onInput=${(text) => setSent({ ...sent, [field.name]: text })} />`)}
      <button disabled=${state.running} aria-busy=${state.running ? "true" : null}>${state.running ? texts.running : texts.run}</button>
    </form>`}
    ${state.error && html`<p class="error" role="alert">${state.error}</p>`}
    ${state.answer && html`<${Answer} answer=${state.answer} />`}</div>`;
}

function Field({ name, required, isOneOf, value, onInput }) {
  const input = { required, value: value ?? "", onInput: (event) => onInput(event.currentTarget.value.trim()), autocomplete: "off", spellcheck: false };
  return html`<label><code>${name}</code> <small>${required ? texts.required : isOneOf ? texts.oneOf : texts.optional}</small>
    ${SHORT.has(name) ? html`<input ...${input} inputmode=${NUMBERS.has(name) ? "numeric" : null} />` : html`<textarea rows="2" ...${input}></textarea>`}</label>`;
}

function Answer({ answer }) {
  const { error, sign_in: found } = answer;
  const isRefused = error?.startsWith(REFUSED);
  const outcome = useRef(null);
  useEffect(() => outcome.current.scrollIntoView({ block: "center" }), [answer]);  // The form above it may be long.
  return html`<div><div ref=${outcome}>
    ${error
      ? html`<${Note} tone="bad" title=${isRefused ? texts.refused : texts.failed}>${error.slice(error.indexOf(": ") + 2)}<//>`
      : html`<p class="good" role="status">${texts.confirmed(found.provider, found.elapsed_ms)}</p>
        ${!found.trusted && html`<${Note} tone="waiting">${texts.claimed}<//>`}`}</div>
    ${!error && html`
        <div class="panel"><${Facts} rows=${[
          [texts.id, html`<code>${found.social_id}</code>`], [texts.name, found.name || texts.noName], [texts.email, found.email || texts.noEmail], [texts.picture, found.picture || texts.noPicture],
        ]} /></div>`}
    <h2>${texts.checks}</h2>
    <${Table} label=${texts.checks} rows=${found.steps.map((step, index) => ({ ...step, key: index }))} columns=${[
      { id: "step", title: texts.check, of: ({ step }) => step }, { id: "seen", title: texts.seen, of: ({ seen }) => textOf(seen) }, { id: "allowed", title: texts.allowed, of: ({ allowed }) => textOf(allowed) },
    ]} />
  </div>`;
}

const textOf = (seen) => (Array.isArray(seen) ? seen.join(", ") : seen === undefined || seen === null ? "" : String(seen)) || html`<span class="muted">–</span>`;
