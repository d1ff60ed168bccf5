// The streams that run now, read again every two seconds while the page is visible.

import { html, useEffect } from "../vendor/preact.js";
import { read } from "./api.js";
import { Loaded, useLoaded } from "./loading.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";

const EVERY_MS = 2_000;
const texts = TEXTS.streamsPage;
const COLUMNS = [
  { id: "stream", title: texts.stream, of: (row) => html`<code>${row.stream_id}</code>` },
  { id: "kind", title: TEXTS.list.kind, of: (row) => row.kind },
  { id: "app", title: TEXTS.list.app, of: (row) => row.app },
  { id: "user", title: texts.user, of: (row) => html`<code>${row.user_id}</code>` },
  { id: "age", title: texts.age, of: (row) => `${(row.age_ms / 1000).toFixed(1)} s` },
  { id: "state", title: texts.state, of: (row) => html`<span class="badge">${row.state}</span>` },
  { id: "readers", title: texts.readers, of: (row) => row.readers },
  { id: "lag", title: texts.lag, of: (row) => `${row.lag_bytes} B` },
];

export function Streams() {
  const state = useLoaded(() => read("/streams", {}, { background: true }), []);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || state.reload(), EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return html`<header class="head"><h1>${TEXTS.streams}</h1></header>
    <${Loaded} state=${state}>${(value) => html`
      <p class="muted">${texts.total(value.total)}</p>
      <${Table} label=${TEXTS.streams} columns=${COLUMNS} rows=${value.streams.map((row) => ({ ...row, key: row.stream_id }))} />`}<//>`;
}
