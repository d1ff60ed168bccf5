// Asks the payment platforms what a payer would pay for the draft of a product.

import { html, useState } from "../vendor/preact.js";
import { configPath, write } from "./api.js";
import { amountOf } from "./formats.js";
import { Badge, Id, Note } from "./parts.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.priceTrial;

export function Prices({ config, value }) {
  const [state, setState] = useState({});
  const run = async (event) => {
    event.preventDefault();
    setState({ running: true });
    setState(await write("POST", `${configPath(config)}/try`, { value }).then((answer) => ({ answer }), (error) => ({ error: error.message })));
  };
  return html`<div class="trial"><p class="lead">${texts.lead}</p>
    <form onSubmit=${run}><button disabled=${state.running} aria-busy=${state.running ? "true" : null}>${state.running ? texts.running : texts.run}</button></form>
    ${state.error && html`<p class="error" role="alert">${state.error}</p>`}
    ${state.answer && html`<${Answer} ...${state.answer} />`}</div>`;
}

function Answer({ prices, left_out: leftOut }) {
  const isOneOff = prices.every(({ draft }) => !draft.period);
  const several = prices.some(({ countries }) => countries.length > 0);
  return html`<div role="status">
    <${Table} label=${texts.label} empty=${texts.none} rows=${prices.map((price, index) => ({ ...price, key: index }))} columns=${[
      { id: "platform", title: texts.platform, of: ({ platform, id, config }) => html`<div><strong>${texts.platforms[platform]}</strong> <span class="muted">${config}</span>${id && html`<div><${Id} value=${id} /></div>`}</div>` },
      { id: "countries", title: texts.countries, of: ({ countries }) => countries.join(", ") || (several ? texts.others : texts.everywhere) },
      { id: "found", title: texts.found, number: isOneOff, of: ({ found }) => (found ? termsOf(found) : html`<span class="muted">${texts.nothing}</span>`) },
      { id: "draft", title: texts.draft, number: isOneOff, of: ({ draft }) => termsOf(draft, texts.noPrice) },
      { id: "result", title: texts.result, of: (price) => html`<${Result} ...${price} />` },
      { id: "elapsed", title: texts.elapsed, number: true, of: ({ elapsed_ms: ms }) => `${ms} ms` },
    ]} />
    ${leftOut > 0 && html`<${Note} tone="waiting">${texts.leftOut(leftOut)}<//>`}</div>`;
}

/** Returns what a payer pays, in words: `$9.99 every month, after a free trial of 7 days`. */
function termsOf({ amount, currency, period, trial, trial_amount: trialAmount }, none = texts.noAmount) {
  const paid = amount === undefined ? none : amountOf(amount, currency);
  const regular = period ? texts.every(paid, texts.period(period)) : paid;
  return trial ? regular + texts.trial(texts.period(trial), trialAmount ? amountOf(trialAmount, currency) : "") : regular;
}

function Result({ differences, error, object, status }) {
  const problems = [...differences, ...(error ? [error.slice(error.indexOf(": ") + 2)] : [])];
  if (!problems.length) {
    const made = { payment: texts.payment, order: texts.order }[object];
    return html`<div><${Badge} tone="good" state=${status} text=${made ? texts.accepted : texts.agrees} />${made && html`<div>${made}</div>`}</div>`;
  }
  return html`<div><${Badge} tone="bad" state=${status} text=${error ? texts.failed : texts.differs} />
    <ul class="plain">${problems.map((problem) => html`<li key=${problem}>${problem}</li>`)}</ul></div>`;
}
