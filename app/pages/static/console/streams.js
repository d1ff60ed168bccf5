// The streams that run now, read again every two seconds while the page is visible.

import { html, useEffect, useState } from "../vendor/preact.js";
import { Action, writeWith } from "./action.js";
import { read, userPath } from "./api.js";
import { Loaded, useLoaded } from "./loading.js";
import { Id } from "./parts.js";
import { go } from "./route.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";
import { UserLink } from "./users.js";

const EVERY_MS = 2_000;
const texts = TEXTS.streamsPage;
const COLUMNS = [
  { id: "stream", title: texts.stream, of: (row) => html`<${Id} value=${row.stream_id} />` },
  { id: "kind", title: TEXTS.list.kind, of: (row) => row.kind },
  { id: "app", title: TEXTS.list.app, of: (row) => row.app },
  { id: "user", title: texts.user, of: (row) => html`<${UserLink} app=${row.app} user=${row.user_id} />` },
  { id: "age", title: texts.age, of: (row) => `${(row.age_ms / 1000).toFixed(1)} s` },
  { id: "state", title: texts.state, of: (row) => html`<span class="badge">${row.state}</span>` },
  { id: "readers", title: texts.readers, of: (row) => row.readers },
  { id: "lag", title: texts.lag, of: (row) => `${row.lag_bytes} B` },
];

export function Streams({ apps, canEdit }) {
  const state = useLoaded(() => read("/streams", {}, { background: true }), []);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || state.reload(), EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const cancel = (row) => ({ reason }) => writeWith(reason, "POST", `${userPath(row.app, row.user_id)}/streams/${row.stream_id}/cancel`, {});
  const action = { id: "actions", title: "", of: (row) => html`<${Action} title=${texts.cancel} text=${texts.cancelText} reason onRun=${cancel(row)} onDone=${state.reload} />` };
  return html`<div><header class="head"><h1>${TEXTS.streams}</h1></header>
    <${Find} apps=${apps} />
    <${Loaded} state=${state}>${(value) => html`
      <p class="muted">${texts.total(value.total)}</p>
      <${Table} label=${TEXTS.streams} columns=${canEdit ? [...COLUMNS, action] : COLUMNS} empty=${texts.none} rows=${value.streams.map((row) => ({ ...row, key: row.stream_id }))} />`}<//></div>`;
}

function Find({ apps }) {
  const [id, setId] = useState("");
  const [app, setApp] = useState("");
  const open = (event) => {
    event.preventDefault();
    go(["streams", app || apps[0] || "default", id.trim()]);
  };
  return html`<form class="toolbar" role="search" onSubmit=${open}>
    <label>${texts.find}<input type="search" required value=${id} onInput=${(event) => setId(event.currentTarget.value)} /></label>
    <label>${TEXTS.list.app}<select value=${app || apps[0]} onChange=${(event) => setApp(event.currentTarget.value)}>${apps.map((each) => html`<option key=${each}>${each}</option>`)}</select></label>
    <button class="quiet">${texts.open}</button>
  </form>`;
}
