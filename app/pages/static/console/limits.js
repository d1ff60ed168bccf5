// Which limits have refused calls in the last minutes, and where each is set.

import { html } from "../vendor/preact.js";
import { read } from "./api.js";
import { Loaded, useLoaded } from "./loading.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.limitsPage;
const PLACES = [[/^connections_per_/, texts.settings], [/^readers_per_stream$/, texts.fixed], [/^image_tasks$/, texts.strategy], [/_per_(user|app|process)$/, texts.field]];
const placeOf = (name) => PLACES.find(([pattern]) => pattern.test(name))?.[1] ?? texts.rates;
const COLUMNS = [
  { id: "limit", title: texts.limit, of: (row) => html`<code>${row.limit}</code>` },
  { id: "refused", title: texts.refused, number: true, of: (row) => row.refused },
  { id: "todo", title: texts.todo, of: (row) => placeOf(row.limit) },
];

export function Limits() {
  const state = useLoaded(() => read("/limits", {}, { background: true }), []);
  return html`<div><div class="actions end"><button class="quiet small" onClick=${state.reload}>${TEXTS.operationsPage.again}</button></div>
    <${Loaded} state=${state}>${(value) => html`<p class="muted">${texts.lead(value.window_s, value.processes)}</p>
      <${Table} label=${TEXTS.operationsPage.tabs.limits} columns=${COLUMNS} rows=${value.limits.map((row) => ({ ...row, key: row.limit }))} empty=${texts.none} />`}<//></div>`;
}
