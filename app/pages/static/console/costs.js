// What calls to vendors have cost, added up by vendor, model, strategy or app.

import { dateOf } from "../shared/times.js";
import { html, useEffect } from "../vendor/preact.js";
import { read } from "./api.js";
import { CsvButton } from "./csv.js";
import { costOf } from "./formats.js";
import { Choice } from "./list.js";
import { Loaded, useLoaded } from "./loading.js";
import { Note } from "./parts.js";
import { go } from "./route.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.costsPage;
const CSV = ["app", "vendor", "model", "strategy", "attempts", "failed", "price", "currency"];
const AGAIN_MS = 1_000;
const NAMES = { vendor: ["vendor"], model: ["model", "vendor"], strategy: ["strategy", "app"], app: ["app"] };

export function Costs({ route, apps }) {
  const { days = "1", by = "vendor", app } = route.query;
  const query = { days, by, app };
  const state = useLoaded(() => read("/costs", query, { background: true }), [days, by, app]);
  const missing = state.value?.missing_hours ?? 0;
  useEffect(() => {
    const timer = missing && setTimeout(state.reload, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [state.value]);
  const choose = (changes) => go(["operations", "costs"], { ...query, ...changes });
  const load = async () => ({ names: CSV, rows: (await read("/costs", query, { background: true })).rows });
  return html`<div><p class="lead">${texts.lead}</p>
    <form class="filters" aria-label=${TEXTS.operationsPage.tabs.costs} onSubmit=${(event) => event.preventDefault()}>
      <label>${texts.days}<${Choice} value=${days} options=${texts.periods} all=${null} onChoose=${(next) => choose({ days: next })} /></label>
      <label>${texts.by}<${Choice} value=${by} options=${texts.dimensions} all=${null} onChoose=${(next) => choose({ by: next })} /></label>
      <label>${TEXTS.list.app}<${Choice} value=${app} options=${apps.map((id) => [id, id])} onChoose=${(next) => choose({ app: next })} /></label>
      <${CsvButton} file="costs.csv" load=${load} />
    </form>
    <${Loaded} state=${state}>${(value) => html`<${Shown} value=${value} by=${by in NAMES ? by : "vendor"} />`}<//></div>`;
}

function Shown({ value, by }) {
  const [main, beside] = NAMES[by];
  const totals = Object.fromEntries(value.totals.map((row) => [row.currency, Number(row.price)]));
  const share = (row) => (totals[row.currency] ? `${Math.round((Number(row.price) / totals[row.currency]) * 100)}%` : "–");
  const title = Object.fromEntries(texts.dimensions)[by];
  const columns = [
    { id: "name", title, of: (row) => html`<span class="answers"><strong>${row[main] || texts.noModel}</strong>${beside && html`<small class="muted">${row[beside]}</small>`}</span>` },
    { id: "price", title: texts.price, number: true, of: (row) => costOf(row.price, row.currency) },
    { id: "share", title: texts.share, number: true, of: share },
    { id: "attempts", title: texts.attempts, number: true, of: (row) => row.attempts },
    { id: "failed", title: texts.failed, number: true, of: (row) => row.failed },
  ];
  return html`${value.missing_hours > 0 && html`<${Note} tone="waiting">${texts.missing(value.missing_hours)}<//>`}
    <p role="status"><strong class="amount">${value.totals.map((row) => costOf(row.price, row.currency)).join(" + ") || "0"}</strong> <span class="muted">${texts.since(dateOf(value.since))}</span></p>
    <${Table} label=${title} columns=${columns} empty=${texts.none} rows=${value.rows.map((row) => ({ ...row, key: `${row.currency} ${row.app} ${row.vendor} ${row.model} ${row.strategy}` }))} />`;
}
