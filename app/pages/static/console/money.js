// The mismatches between this server and payment platforms, the newest first.

import { html } from "../vendor/preact.js";
import { read } from "./api.js";
import { Loaded, useLoaded } from "./loading.js";
import { hrefOf } from "./route.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.moneyPage;
const COLUMNS = [
  { id: "found", title: texts.found, of: (row) => row.found_at },
  { id: "app", title: TEXTS.list.app, of: (row) => row.app },
  { id: "platform", title: texts.platform, of: (row) => row.platform },
  { id: "kind", title: texts.kind, of: (row) => html`<span class="badge">${row.kind}</span>` },
  { id: "subject", title: texts.subject, of: (row) => html`<code>${row.subject}</code>` },
  { id: "detail", title: texts.detail, of: (row) => row.detail },
];

export function Money({ route }) {
  const { before } = route.query;
  const state = useLoaded(() => read("/payments/mismatches", { before }), [before]);
  return html`<header class="head"><h1>${TEXTS.money}</h1></header>
    <${Loaded} state=${state}>${(value) => html`
      <${Table} label=${TEXTS.money} columns=${COLUMNS} rows=${value.mismatches.map((row) => ({ ...row, key: row.mismatch_id }))} />
      ${value.next && html`<p><a href=${hrefOf(["money"], { before: value.next })}>${TEXTS.list.next}</a></p>`}`}<//>`;
}
