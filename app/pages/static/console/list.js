// A list that the server pages, filters and sorts. Its state is in the address.

import { html, useEffect, useLayoutEffect, useState } from "../vendor/preact.js";
import { read } from "./api.js";
import { CsvButton } from "./csv.js";
import { Loaded, useLoaded } from "./loading.js";
import { go, hrefOf } from "./route.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";

const SIZE = 25;
const CSV_SIZE = 100;
const CSV_ROWS = 10_000;

export const appFilter = (apps) => ({ id: "app", title: TEXTS.list.app, options: apps.map((id) => [id, id]) });

/** A filter by the states that a column with this `title` shows. */
export const stateFilter = (title, states, id = "status") => ({ id, title, options: states.map((state) => [state, TEXTS.states[state] ?? state]) });

/**
 * `parts`: the address. `path`, `field`: where the rows are read, and their name in the reply. `filters`:
 * `{id, title, options, search}`. `columns` as for `Table`; a column with `sorts` toggles the order of creation.
 * `keyOf(row)` is unique. `fixed`: fields of each query. `order`: that of the first page. `everyMs`: how often the rows
 * are read again while the page is visible. `above(value, reload)` is shown above the rows.
 */
export function List({ label, parts, route, path, field, filters = [], columns, keyOf, fixed = {}, empty, order = "-created", everyMs, above }) {
  const names = filters.map(({ id }) => id);
  const state = Object.fromEntries([...names, "sort", "before"].map((id) => [id, route.query[id]]));
  const query = { ...fixed, ...state, size: SIZE };
  const loaded = useLoaded(() => read(path, query, { background: Boolean(everyMs) }), [path, JSON.stringify(query)]);
  useEffect(() => {
    const timer = everyMs && setInterval(() => document.hidden || loaded.reload(), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  const choose = (changes) => go(parts, { ...state, before: undefined, ...changes });
  const sorted = state.sort ?? order;
  const shown = columns.map((column) => ({ ...column, ...(column.sorts && { id: "created" }) }));
  const sort = columns.some((column) => column.sorts) ? sorted : undefined;
  return html`<div class="list">
    <${Filters} ...${{ filters, state, choose, path, field, query, label }} />
    <${Loaded} state=${loaded}>${(value) => html`${above?.(value, loaded.reload)}
      <${Table} label=${label} columns=${shown} sort=${sort} onSort=${(next) => choose({ sort: next === order ? undefined : next })}
        rows=${value[field].map((row) => ({ ...row, rowKey: keyOf(row) }))} empty=${empty} />
      <${Pages} parts=${parts} state=${state} next=${value.next} />`}<//>
  </div>`;
}

function Filters({ filters, state, choose, path, field, query, label }) {
  const [open, setOpen] = useState(false);
  const chosen = filters.filter(({ id }) => state[id]).length;
  return html`<form class=${`filters ${open ? "open" : ""}`} role="search" aria-label=${label} onSubmit=${(event) => event.preventDefault()}>
    ${filters.length > 1 && html`<button type="button" class="quiet fold" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>${TEXTS.list.filter(chosen)}</button>`}
    ${filters.map((filter) => html`<label key=${filter.id} class=${filter.search ? "wide" : ""}>${filter.title}
      ${filter.options
        ? html`<${Choice} value=${state[filter.id]} options=${filter.options} all=${filter.all} onChoose=${(next) => choose({ [filter.id]: next })} />`
        : html`<${Search} value=${state[filter.id]} hint=${filter.hint} onSearch=${(text) => choose({ [filter.id]: text })} />`}
    </label>`)}
    <${CsvButton} file=${`${field}.csv`} load=${(onCount) => allRows(path, field, query, onCount)} />
  </form>`;
}

/** A search box. What is typed stays while the page shows the result of the search before. */
export function Search({ value = "", hint = "", onSearch }) {
  const [typed, setTyped] = useState(value);
  useLayoutEffect(() => setTyped(value), [value]); // Before the next key: a later effect would drop what it typed.
  return html`<input type="search" value=${typed} placeholder=${hint} onInput=${(event) => setTyped(event.currentTarget.value)}
    onChange=${(event) => onSearch(event.currentTarget.value.trim())} />`;
}

export const Choice = ({ value, options, all = TEXTS.list.all, onChoose }) => html`<select value=${value ?? ""}
  onChange=${(event) => onChoose(event.currentTarget.value)}>
  ${all !== null && html`<option value="">${all}</option>`}
  ${options.map(([id, title]) => html`<option key=${id} value=${id} selected=${id === value}>${title}</option>`)}
</select>`;

/** Reads all rows that fit a query, page by page. */
async function allRows(path, field, query, onCount) {
  const rows = [];
  let before;
  do {
    const page = await read(path, { ...query, before, size: CSV_SIZE });
    rows.push(...page[field]);
    before = page.next;
    onCount(rows.length);
  } while (before !== undefined && rows.length < CSV_ROWS);
  const names = [...new Set(rows.flatMap(Object.keys))];
  const flat = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : value);
  return { names, rows: rows.map((row) => Object.fromEntries(names.map((name) => [name, flat(row[name])]))), isCut: before !== undefined };
}

function Pages({ parts, state, next }) {
  if (!state.before && next === undefined) return null;
  return html`<nav class="pager" aria-label=${TEXTS.list.pages}>
    ${state.before && html`<a class="button" href=${hrefOf(parts, { ...state, before: undefined })}>${TEXTS.list.first}</a>`}
    ${next !== undefined && html`<a class="button" href=${hrefOf(parts, { ...state, before: next })}>${TEXTS.list.next}</a>`}
  </nav>`;
}
