// The list of configs of all apps, the settings that a search finds, and what makes new ones.

import { html, useState } from "../vendor/preact.js";
import { read } from "./api.js";
import { authorOf } from "./audit.js";
import { CsvButton } from "./csv.js";
import { allDrafts } from "./drafts.js";
import { Choice, Search } from "./list.js";
import { Loaded, useLoaded } from "./loading.js";
import { NewApp, NewConfig } from "./new_config.js";
import { Note, Time } from "./parts.js";
import { go, hrefOf } from "./route.js";
import { fitOf, labelOf, ownFit, resolved } from "./schema.js";
import { Pager, Table } from "./table.js";
import { TEXTS } from "./texts.js";

const SIZE = 50;
const CSV = ["app", "kind", "name", "revision", "author", "comment", "updated_at", "fault"];
const SETTINGS = 8;
const ORDER = "order of strategies";
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
  { id: "kind", title: TEXTS.list.kind, sorts: true, of: (row) => row.title ?? row.kind },
  { id: "app", title: TEXTS.list.app, sorts: true, of: (row) => row.app },
  { id: "state", title: texts.state, of: (row) => html`<${Reasons} row=${row} />` },
  { id: "revision", title: texts.revision, number: true, of: (row) => row.revision },
  { id: "author", title: texts.author, sorts: true, of: (row) => authorOf(row.author) },
  { id: "updated_at", title: texts.updated, sorts: true, of: (row) => html`<${Time} at=${row.updated_at} />` },
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
  const appIds = [...new Set([...existing.filter((id) => id === "default"), ...(app ? [app] : []), ...existing])];
  const kindRows = kinds.value?.kinds ?? [];
  const form = { apps: existing, kinds: kindRows };
  const titles = Object.fromEntries(kindRows.map((row) => [row.kind, row.title]));
  const settings = text ? settingsOf(text, kindRows) : [];
  return html`<div><header class="head"><h1>${TEXTS.configs}</h1>
      ${canEdit && apps.value && kinds.value && html`<div class="actions"><${NewApp} apps=${existing} />
        <${NewConfig} key=${JSON.stringify(filter)} ...${form} given=${{ app, kind }} open=${route.query.new === "1"} /></div>`}</header>
    <div class="lead">${lists.lead} <${OrderLink} apps=${app ? [app] : appIds} /></div>
    ${canEdit && html`<${Drafts} />`}
    <form class="toolbar" role="search" aria-label=${TEXTS.configs} onSubmit=${(event) => event.preventDefault()}>
      <label>${TEXTS.list.search}<${Search} value=${text} hint=${lists.searchHint} onSearch=${(next) => choose({ text: next })} /></label>
      <button class="quiet">${TEXTS.list.search}</button>
      <label>${TEXTS.list.app}<${Choice} value=${app} options=${appIds.map((id) => [id, id])} onChoose=${(id) => choose({ app: id })} /></label>
      <label>${TEXTS.list.kind}<${Choice} value=${kind} options=${kindRows.map((row) => [row.kind, row.title])} onChoose=${(id) => choose({ kind: id })} /></label>
      <${CsvButton} file="configs.csv" load=${load} />
    </form>
    ${settings.length > 0 && appIds.length > 0 && html`<${Settings} key=${app} text=${text} settings=${settings} apps=${app ? [app] : appIds} />`}
    <${Loaded} state=${state}>${(value) => html`
      <${Table} label=${TEXTS.configs} columns=${COLUMNS} sort=${sort} onSort=${(next) => choose({ sort: next })} empty=${settings.length ? lists.noneNamed : text || app || kind ? lists.none : lists.noConfigs}
        rows=${value.configs.map((row) => ({ ...row, title: titles[row.kind], key: `${row.app}/${row.kind}/${row.name}` }))} />
      <${Pager} offset=${offset} size=${SIZE} total=${value.total} onOffset=${(next) => choose({ offset: next })} />`}<//></div>`;
}

/** Links to what was changed in this tab and not saved yet, which may be in no list. */
function Drafts() {
  const drafts = allDrafts();
  return drafts.length > 0 && html`<${Note} tone="waiting" title=${lists.drafts}><ul>${drafts.map((key) => html`<li key=${configHref(key)}>
    <a href=${configHref(key)}>${key.name}</a> ${lists.of(key.kind, key.app)}</li>`)}</ul><//>`;
}

/** Where the order in which an app's strategies are tried is set. */
export const orderHref = (app) => configHref({ app, kind: "apps", name: "default" }, { find: ORDER });

/** A link to the order of strategies of an app, or a choice of the app if there are several. */
function OrderLink({ apps }) {
  if (apps.length < 2) return apps.map((id) => html`<a key=${id} href=${orderHref(id)}>${lists.order}</a>`);
  const open = (id) => go(["configs", id, "apps", "default"], { find: ORDER });
  return html`<label class="within-text">${lists.orderOf} <${Choice} value="" options=${apps.map((id) => [id, id])} all=${lists.anApp} onChoose=${open} /></label>`;
}

/** The fields of kinds that fit a search or contain one that does, the best first. */
function settingsOf(text, kinds) {
  const found = kinds.flatMap(({ kind, title, singleton, schema }) => Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const inner = resolved(property, schema.$defs ?? {});
    return { kind, title, singleton, name, label: labelOf(name, inner), fit: fitOf(name, inner, schema.$defs ?? {}, text), find: ownFit(name, inner, text) ? labelOf(name, inner) : text };
  }));
  return found.filter(({ fit }) => fit > 0).sort((one, other) => other.fit - one.fit || other.singleton - one.singleton).slice(0, SETTINGS);
}

/** Links to where found settings are set, in one app. */
function Settings({ text, settings, apps }) {
  const [app, setApp] = useState(apps[0]);
  const href = ({ kind, singleton, find }) => (singleton ? configHref({ app, kind, name: "default" }, { find }) : hrefOf(["configs"], { app, kind }));
  return html`<section class="settings" aria-label=${lists.fields(text)}><h2>${lists.fields(text)}</h2>
    ${apps.length > 1 && html`<label class="within-text">${lists.inApp} <${Choice} value=${app} options=${apps.map((id) => [id, id])} all=${null} onChoose=${setApp} /></label>`}
    <ul>${settings.map((field) => html`<li key=${`${field.kind}/${field.name}`}><a href=${href(field)}><strong>${field.label}</strong></a> ${lists.in} ${field.title}</li>`)}</ul></section>`;
}
