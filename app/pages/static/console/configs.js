// The list of configs of all apps, the settings that a search finds, and what makes new ones.

import { html } from "../vendor/preact.js";
import { read } from "./api.js";
import { CsvButton } from "./csv.js";
import { allDrafts } from "./drafts.js";
import { dateOf } from "./formats.js";
import { Choice, Search } from "./list.js";
import { Loaded, useLoaded } from "./loading.js";
import { NewApp, NewConfig } from "./new_config.js";
import { Note } from "./parts.js";
import { go, hrefOf } from "./route.js";
import { fitOf, labelOf, ownFit, resolved } from "./schema.js";
import { Pager, Table } from "./table.js";
import { TEXTS } from "./texts.js";

const SIZE = 50;
const CSV = ["app", "kind", "name", "revision", "author", "comment", "updated_at", "fault"];
const SETTINGS = 8;
const texts = TEXTS.config;
const lists = TEXTS.configsPage;

export const configHref = ({ app, kind, name }, query) => hrefOf(["configs", app, kind, name], query);

export const State = ({ row }) =>
  row.fault
    ? html`<span class="badge bad">${texts.fault}</span>`
    : row.warnings
      ? html`<span class="badge waiting">${texts.warned}</span>`
      : html`<span class="badge good">${texts.good}</span>`;

/** The state with the reasons for it. */
const Reasons = ({ row }) => html`<div><${State} row=${row} />
  ${row.fault && html`<small class="why">${row.fault}</small>`}
  ${row.warnings?.map(({ path, message }) => html`<small class="why" key=${path}><code>${path}</code> ${message}</small>`)}</div>`;

const COLUMNS = [
  { id: "name", title: texts.name, sorts: true, of: (row) => html`<a href=${configHref(row)}>${row.name}</a>` },
  { id: "kind", title: TEXTS.list.kind, sorts: true, of: (row) => row.kind },
  { id: "app", title: TEXTS.list.app, sorts: true, of: (row) => row.app },
  { id: "state", title: texts.state, of: (row) => html`<${Reasons} row=${row} />` },
  { id: "revision", title: texts.revision, number: true, of: (row) => row.revision },
  { id: "author", title: texts.author, sorts: true, of: (row) => row.author },
  { id: "updated_at", title: texts.updated, sorts: true, of: (row) => dateOf(row.updated_at) },
];

export function Configs({ route, canEdit }) {
  const { app, kind, text, sort } = route.query;
  const offset = Number(route.query.offset ?? 0) || 0;
  const filter = { app, kind, text, sort };
  const state = useLoaded(() => read("/configs", { ...filter, offset, size: SIZE }), [app, kind, text, sort, offset]);
  const kinds = useLoaded(() => read("/kinds"), []);
  const apps = useLoaded(() => read("/configs", { kind: "apps" }), [app]);
  const choose = (changes) => go(["configs"], { ...filter, offset: undefined, ...changes });
  const load = async () => ({ names: CSV, rows: (await read("/configs", filter)).configs });
  const existing = apps.value?.configs.map((row) => row.app) ?? [];
  const appIds = app && !existing.includes(app) ? [app, ...existing] : existing;
  const kindRows = kinds.value?.kinds ?? [];
  const form = { apps: existing, kinds: kindRows };
  const orderApps = app ? [app] : appIds.slice(0, 3);
  return html`<div><header class="head"><h1>${TEXTS.configs}</h1>
      ${canEdit && apps.value && kinds.value && html`<div class="actions"><${NewApp} apps=${existing} />
        <${NewConfig} key=${JSON.stringify(filter)} ...${form} given=${{ app, kind }} open=${route.query.new === "1"} /></div>`}</header>
    <p class="lead">${lists.lead} ${orderApps.map((id) => html` <a key=${id} href=${orderHref(id)}>${appIds.length > 1 ? lists.orderOf(id) : lists.order}</a>`)}</p>
    ${canEdit && html`<${Drafts} />`}
    <div class="toolbar">
      <label>${TEXTS.list.search}<${Search} value=${text} onSearch=${(next) => choose({ text: next })} /></label>
      <label>${TEXTS.list.app}<${Choice} value=${app} options=${appIds.map((id) => [id, id])} onChoose=${(id) => choose({ app: id })} /></label>
      <label>${TEXTS.list.kind}<${Choice} value=${kind} options=${kindRows.map((row) => [row.kind, row.title])} onChoose=${(id) => choose({ kind: id })} /></label>
      <${CsvButton} file="configs.csv" load=${load} />
    </div>
    ${text && html`<${Settings} text=${text} kinds=${kindRows} apps=${app ? [app] : appIds} />`}
    <${Loaded} state=${state}>${(value) => html`
      <${Table} label=${TEXTS.configs} columns=${COLUMNS} sort=${sort} onSort=${(next) => choose({ sort: next })} empty=${text || app || kind ? lists.none : lists.noConfigs}
        rows=${value.configs.map((row) => ({ ...row, key: `${row.app}/${row.kind}/${row.name}` }))} />
      <${Pager} offset=${offset} size=${SIZE} total=${value.total} onOffset=${(next) => choose({ offset: next })} />`}<//></div>`;
}

/** Links to what was changed in this tab and not saved yet, which may be in no list. */
function Drafts() {
  const drafts = allDrafts();
  return drafts.length > 0 && html`<${Note} tone="waiting" title=${lists.drafts}><ul>${drafts.map((key) => html`<li key=${configHref(key)}>
    <a href=${configHref(key)}>${key.name}</a> ${lists.of(key.kind, key.app)}</li>`)}</ul><//>`;
}

/** Where the order in which an app's strategies are tried is set. */
export const orderHref = (app) => configHref({ app, kind: "apps", name: "default" }, { find: "order of strategies" });

/** The fields of kinds that fit a search or contain one that does, with links to where they are set. */
function Settings({ text, kinds, apps }) {
  const found = kinds.flatMap(({ kind, title, singleton, schema }) => Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const inner = resolved(property, schema.$defs ?? {});
    return { kind, title, singleton, name, label: labelOf(name, inner), fit: fitOf(name, inner, schema.$defs ?? {}, text), find: ownFit(name, inner, text) ? labelOf(name, inner) : text };
  }));
  const best = found.filter(({ fit }) => fit > 0).sort((one, other) => other.fit - one.fit || other.singleton - one.singleton).slice(0, SETTINGS);
  const href = ({ kind, singleton, find }, app) => (singleton ? configHref({ app, kind, name: "default" }, { find }) : hrefOf(["configs"], { app, kind }));
  if (!best.length || !apps.length) return null;
  return html`<section class="settings" aria-label=${lists.fields(text)}><h2>${lists.fields(text)}</h2><ul>${best.map((field) => html`<li key=${`${field.kind}/${field.name}`}>
    <strong>${field.label}</strong> ${lists.in} ${apps.slice(0, 3).map((app) => html` <a key=${app} href=${href(field, app)}>${field.title}${apps.length > 1 ? ` (${app})` : ""}</a>`)}</li>`)}</ul></section>`;
}
