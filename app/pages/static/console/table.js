// Tables with headings that sort, the buttons for their pages, and files to store.

import { html } from "../vendor/preact.js";
import { TEXTS } from "./texts.js";

/** `columns`: `{id, title, of, sorts, number}`. `of(row)` is what a cell shows. `number`: cells end at the same edge. `sort` is the id, with `-` for descending. A row has a `rowKey` or `key`. */
export function Table({ label, columns, rows, sort, onSort, empty }) {
  if (!rows.length) return html`<p class="empty">${empty ?? TEXTS.list.none}</p>`;
  return html`<div class="table" role="region" aria-label=${label} tabindex="0">
    <table aria-label=${label}>
      <thead>
        <tr>${columns.map((column) => html`<${Heading} key=${column.id} ...${{ column, sort, onSort }} />`)}</tr>
      </thead>
      <tbody>
        ${rows.map((row) => html`<tr key=${row.rowKey ?? row.key}>
          ${columns.map((column) => html`<td data-title=${column.title} class=${column.number ? "number" : null} key=${column.id}>${column.of(row)}</td>`)}
        </tr>`)}
      </tbody>
    </table>
  </div>`;
}

function Heading({ column, sort, onSort }) {
  const descending = sort === `-${column.id}`;
  const order = descending ? "descending" : sort === column.id ? "ascending" : null;
  if (!column.sorts) return html`<th scope="col" class=${column.number ? "number" : null}>${column.title || html`<span class="unseen">${TEXTS.list.actions}</span>`}</th>`;
  const next = sort === column.id ? `-${column.id}` : column.id;
  return html`<th scope="col" aria-sort=${order} class=${column.number ? "number" : null}>
    <button class="plain" onClick=${() => onSort(next)}>
      ${column.title}<span aria-hidden="true">${order === null ? "" : descending ? " ↓" : " ↑"}</span>
    </button>
  </th>`;
}

export function Pager({ offset, size, total, onOffset }) {
  if (!total) return null;
  return html`<nav class="pager" aria-label=${TEXTS.list.pages}>
    <span class="muted">${TEXTS.list.range(offset + 1, Math.min(offset + size, total), total)}</span>
    <button class="quiet" disabled=${offset === 0} onClick=${() => onOffset(Math.max(0, offset - size))}>${TEXTS.list.previous}</button>
    <button class="quiet" disabled=${offset + size >= total} onClick=${() => onOffset(offset + size)}>${TEXTS.list.next}</button>
  </nav>`;
}

/** Lets the browser store a text as a file. */
export function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
