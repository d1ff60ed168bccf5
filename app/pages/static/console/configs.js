// The list of configs of all apps.

import { html, useState } from "../vendor/preact.js";
import { read } from "./api.js";
import { dateOf } from "./formats.js";
import { Choice } from "./list.js";
import { Loaded, useLoaded } from "./loading.js";
import { go, hrefOf } from "./route.js";
import { csvOf, download, Pager, Table } from "./table.js";
import { TEXTS } from "./texts.js";

const SIZE = 50;
const CSV = ["app", "kind", "name", "revision", "author", "comment", "updated_at", "fault"];
const texts = TEXTS.config;

export const configHref = ({ app, kind, name }) => hrefOf(["configs", app, kind, name]);

export const State = ({ row }) =>
  row.fault
    ? html`<span class="badge bad" title=${row.fault}>${texts.fault}</span>`
    : row.warnings
      ? html`<span class="badge" title=${row.warnings.map(({ message }) => message).join("; ")}>${texts.warned}</span>`
      : html`<span class="badge good">${texts.good}</span>`;

const COLUMNS = [
  { id: "name", title: texts.name, sorts: true, of: (row) => html`<a href=${configHref(row)}>${row.name}</a>` },
  { id: "kind", title: TEXTS.list.kind, sorts: true, of: (row) => row.kind },
  { id: "app", title: TEXTS.list.app, sorts: true, of: (row) => row.app },
  { id: "state", title: texts.state, of: (row) => html`<${State} row=${row} />` },
  { id: "revision", title: texts.revision, of: (row) => row.revision },
  { id: "author", title: texts.author, sorts: true, of: (row) => row.author },
  { id: "updated_at", title: texts.updated, sorts: true, of: (row) => dateOf(row.updated_at) },
];

export function Configs({ route, canEdit }) {
  const { app, kind, text, sort } = route.query;
  const offset = Number(route.query.offset ?? 0) || 0;
  const filter = { app, kind, text, sort };
  const state = useLoaded(() => read("/configs", { ...filter, offset, size: SIZE }), [app, kind, text, sort, offset]);
  const kinds = useLoaded(() => read("/kinds"), []);
  const apps = useLoaded(() => read("/configs", { kind: "apps" }), []);
  const choose = (changes) => go(["configs"], { ...filter, offset: undefined, ...changes });
  const store = async () => {
    const all = await read("/configs", filter);
    download("configs.csv", "text/csv", csvOf(CSV, all.configs));
  };
  const appIds = apps.value?.configs.map((row) => row.app) ?? [];
  const kindRows = kinds.value?.kinds ?? [];
  return html`<div><header class="head"><h1>${TEXTS.configs}</h1></header>
    <div class="toolbar">
      <label>${TEXTS.list.search}<input type="search" value=${text ?? ""} onChange=${(event) => choose({ text: event.currentTarget.value })} /></label>
      <label>${TEXTS.list.app}<${Choice} value=${app} options=${appIds.map((id) => [id, id])} onChoose=${(id) => choose({ app: id })} /></label>
      <label>${TEXTS.list.kind}<${Choice} value=${kind} options=${kindRows.map((row) => [row.kind, row.title])} onChoose=${(id) => choose({ kind: id })} /></label>
      <button class="quiet" onClick=${store}>${TEXTS.list.csv}</button>
    </div>
    <${Loaded} state=${state}>${(value) => html`
      <${Table} label=${TEXTS.configs} columns=${COLUMNS} sort=${sort} onSort=${(next) => choose({ sort: next })}
        rows=${value.configs.map((row) => ({ ...row, key: `${row.app}/${row.kind}/${row.name}` }))} />
      <${Pager} offset=${offset} size=${SIZE} total=${value.total} onOffset=${(next) => choose({ offset: next })} />`}<//>
    ${canEdit && html`<${Create} apps=${appIds} kinds=${kindRows} app=${app} kind=${kind} />`}</div>`;
}

function Create({ apps, kinds, app, kind }) {
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState({});
  const given = { app: chosen.app ?? app ?? apps[0], kind: chosen.kind ?? kind ?? kinds[0]?.kind };
  const singleton = kinds.find((row) => row.kind === given.kind)?.singleton;
  const submit = (event) => {
    event.preventDefault();
    go(["configs", given.app, given.kind, singleton ? "default" : name]);
  };
  const set = (key) => (event) => setChosen({ ...chosen, [key]: event.currentTarget.value });
  return html`<h2>${texts.create}</h2>
    <form class="toolbar" onSubmit=${submit}>
      <label>${texts.name}<input required=${!singleton} disabled=${singleton} value=${singleton ? "default" : name}
        onInput=${(event) => setName(event.currentTarget.value)} /></label>
      <label>${TEXTS.list.app}<select value=${given.app} onChange=${set("app")}>${apps.map((id) => html`<option key=${id}>${id}</option>`)}</select></label>
      <label>${TEXTS.list.kind}<select value=${given.kind} onChange=${set("kind")}>${kinds.map((row) => html`<option key=${row.kind} value=${row.kind}>${row.title}</option>`)}</select></label>
      <button>${texts.open}</button>
    </form>`;
}
