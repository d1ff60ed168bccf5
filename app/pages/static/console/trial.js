// Tries a draft before it is published: one call of the vendor, or the preview of an email.

import { html, useEffect, useState } from "../vendor/preact.js";
import { Action } from "./action.js";
import { configPath, write } from "./api.js";
import { Facts, Note } from "./parts.js";
import { TEXTS } from "./texts.js";
import { Prices } from "./trial_prices.js";
import { SignIn } from "./trial_sign_in.js";

const texts = TEXTS.trial;
const DELAY_MS = 400;

/** The kinds of configs that can be tried, and how. */
export const TRIALS = { conversation: Strategy, speech: Strategy, vendor_accounts: Strategy, events: Strategy, mail: Mail, sign_in: SignIn, products: Prices };

function Strategy({ config, value }) {
  const isVoice = config.kind === "speech";
  const isSink = config.kind === "events";
  const isAccount = config.kind === "vendor_accounts";
  const [text, setText] = useState(isVoice ? texts.spoken : isSink ? texts.reported : texts.asked);
  const [model, setModel] = useState("");
  const [state, setState] = useState({});
  const run = async (event) => {
    event.preventDefault();
    setState({ running: true });
    setState(await write("POST", `${configPath(config)}/try`, { value, text, model }).then((answer) => ({ answer }), (error) => ({ error: error.message })));
  };
  return html`<div class="trial"><p class="lead">${isSink ? texts.sinkLead : texts.lead}</p>
    <form onSubmit=${run}>
      ${isAccount && html`<label>${texts.model}<input required maxlength="256" value=${model} onInput=${(event) => setModel(event.currentTarget.value)} /><small>${texts.modelHelp}</small></label>`}
      <label>${isVoice ? texts.speak : isSink ? texts.report : texts.ask}<textarea rows="2" required maxlength="2000" value=${text} onInput=${(event) => setText(event.currentTarget.value)}></textarea></label>
      <button disabled=${state.running} aria-busy=${state.running ? "true" : null}>${state.running ? texts.running : texts.run}</button>
    </form>
    ${state.error && html`<p class="error" role="alert">${state.error}</p>`}
    ${state.answer && html`<${Answer} answer=${state.answer} isVoice=${isVoice} isSink=${isSink} />`}</div>`;
}

function Answer({ answer, isVoice, isSink }) {
  if (answer.error) return html`<${Note} tone="bad" title=${isSink ? texts.sinkFailed : texts.failed}>${answer.error}<//>`;
  if (isSink) return html`<p class="good" role="status">${texts.accepted(answer.elapsed_ms)}</p>`;
  const found = answer.strategy;
  const units = isVoice ? texts.characters(found.input_units) : texts.tokens(found.input_units, found.output_units);
  return html`<div role="status">
    <div class="panel"><${Facts} rows=${[
      [texts.platform, found.platform], [texts.firstOutput, `${found.first_output_ms ?? "–"} ms`], [texts.elapsed, `${answer.elapsed_ms} ms`],
      [texts.usage, `${units}${found.usage_source === "estimated" ? ` (${texts.estimated})` : ""}`], [texts.price, `${found.price} ${found.currency.toUpperCase()}`],
    ]} /></div>
    ${found.text && html`<blockquote class="answer">${found.text}</blockquote>`}
    ${found.audio_base64 && html`<${Sound} ...${found} />`}
    <details><summary>${texts.events(found.events.length)}</summary>
      <ol class="events">${found.events.map((event, index) => html`<li key=${index}><code>${`${event.at_ms} ms`}</code> <code>${JSON.stringify(Object.fromEntries(Object.entries(event).filter(([key]) => key !== "at_ms")))}</code></li>`)}</ol></details>
  </div>`;
}

function Sound({ audio_base64: encoded, mime_type: type }) {
  const [url, setUrl] = useState(null);
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([Uint8Array.from(atob(encoded), (each) => each.charCodeAt(0))], { type }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [encoded]);
  return url && html`<p><audio controls src=${url} aria-label=${texts.sound}></audio></p>`;
}

/** The email as its reader sees it, while its templates and variables change. */
function Mail({ config, value }) {
  const [variables, setVariables] = useState({});
  const [state, setState] = useState({});
  useEffect(() => {
    let current = true;
    const timer = setTimeout(async () => {
      const path = `/mails/${encodeURIComponent(config.app)}/${encodeURIComponent(config.name)}/preview`;
      const next = await write("POST", path, { value, variables }).then((email) => ({ email }), (error) => ({ error: error.message }));
      if (current) setState((before) => ({ email: before.email, ...next }));
    }, DELAY_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [JSON.stringify(value), JSON.stringify(variables)]);
  const names = (state.email?.variables ?? []).filter((name) => name.startsWith("CustomVariables.")).map((name) => name.split(".")[1]);
  const { email, error } = state;
  const [sent, setSent] = useState("");
  const sendTest = ({ values, send }) => send("POST", `/mails/${encodeURIComponent(config.app)}/${encodeURIComponent(config.name)}/test`, { value, variables, to: values.to }).then(() => setSent(values.to));
  return html`<div class="trial"><p class="lead">${texts.mailLead}</p>
    <div class="filters">${names.map((name) => html`<label key=${name}>${name}<input value=${variables[name] ?? ""} onInput=${(event) => setVariables({ ...variables, [name]: event.currentTarget.value })} /></label>`)}</div>
    ${error && html`<p class="error" role="alert">${error}</p>`}
    ${email && html`<p class="actions"><${Action} title=${texts.sendTest} text=${texts.sendTestText} fields=${[{ id: "to", title: texts.to, type: "email", required: true }]} reason onRun=${sendTest} /></p>`}
    ${sent && html`<p class="good" role="status">${texts.sent(sent)}</p>`}
    ${email && html`<div class="panel email"><h2>${email.subject || texts.noSubject}</h2>
      ${email.html && html`<iframe sandbox="" title=${texts.mailHtml} srcdoc=${email.html}></iframe>`}
      ${email.text && html`<h3>${texts.mailText}</h3><pre>${email.text}</pre>`}</div>`}</div>`;
}
