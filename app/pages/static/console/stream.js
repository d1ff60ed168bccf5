// A stream that has ended: its attempts at vendors, how long each took, and what it cost.

import { html } from "../vendor/preact.js";
import { read } from "./api.js";
import { Loaded, useLoaded } from "./loading.js";
import { Badge, Crumbs, Facts, Id, Time } from "./parts.js";
import { hrefOf } from "./route.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";
import { UserLink } from "./users.js";

const texts = TEXTS.streamsPage;
const OUTCOMES = { won: "good", failed: "bad" };

function Bar({ row, most }) {
  const width = Math.max(1, (row.elapsed_ms / most) * 100);
  const first = row.first_output_ms === undefined || row.first_output_ms === null ? null : (row.first_output_ms / most) * 100;
  return html`<svg class=${`span ${OUTCOMES[row.outcome] ?? ""}`} viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label=${texts.bar(row.elapsed_ms, row.first_output_ms)}>
    <rect class="back" width="100" height="10" /><rect width=${width} height="10" />${first !== null && html`<rect class="first" x=${first} width=".8" height="10" />`}</svg>`;
}

export function Stream({ route }) {
  const [app, id] = route.parts;
  const state = useLoaded(() => read(`/streams/${encodeURIComponent(app)}/${encodeURIComponent(id)}/attempts`), [app, id]);
  return html`<div><${Crumbs} steps=${[[TEXTS.streams, hrefOf(["streams"])], [app]]} />
    <header class="head"><h1>${texts.stream}</h1></header>
    <${Loaded} state=${state}>${(found) => html`<${Attempts} ...${{ app, id, found }} />`}<//></div>`;
}

function Attempts({ app, id, found }) {
  const most = Math.max(1, ...found.attempts.map((row) => row.elapsed_ms));
  const columns = [
    { id: "stage", title: TEXTS.overviewPage.stage, of: (row) => TEXTS.overviewPage.stages[row.stage] ?? row.stage },
    { id: "strategy", title: texts.strategy, of: (row) => html`<strong>${row.strategy}</strong> <small class="muted">${row.vendor}</small>` },
    { id: "outcome", title: texts.outcome, of: (row) => html`<${Badge} tone=${OUTCOMES[row.outcome] ?? ""} text=${texts.outcomes[row.outcome] ?? row.outcome} />` },
    { id: "time", title: texts.time, of: (row) => html`<${Bar} row=${row} most=${most} /><small class="muted">${texts.bar(row.elapsed_ms, row.first_output_ms)}</small>` },
    { id: "usage", title: TEXTS.trial.usage, of: (row) => `${row.input_unit} / ${row.output_unit}` },
    { id: "price", title: TEXTS.trial.price, of: (row) => row.price },
    { id: "message", title: texts.why, of: (row) => html`<span class="todo">${row.message}</span>` },
  ];
  return html`<div><div class="panel"><${Facts} rows=${[
      [texts.user, html`<${UserLink} app=${app} user=${found.user_id} />`], [texts.stream, html`<${Id} value=${id} />`],
      [texts.began, html`<${Time} at=${found.began_at} />`], [texts.attempts, found.attempts.length],
    ]} /></div>
    <h2>${texts.attempts}</h2>
    <${Table} label=${texts.attempts} columns=${columns} rows=${found.attempts.map((row) => ({ ...row, key: row.number }))} /></div>`;
}
