// The export of rows as CSV: its button, and what the file contains.

import { html, useState } from "../vendor/preact.js";
import { download } from "./table.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.csv;
// A cell that begins with one of these is a formula, also where a spreadsheet splits a text at a semicolon, a tab or a line.
const FORMULA = /(^|[;\t\r\n])(?=["\s]*[=+\-@＝＋－＠])(?!-\d+(?:\.\d+)?(?:[;\t\r\n]|$))/g;

/** `load(onCount)` returns `{names, rows, isCut}`. `onCount(count)` shows how many rows it has read. */
export function CsvButton({ file, load }) {
  const [state, setState] = useState({});
  const store = async () => {
    setState({ count: 0 });
    try {
      const { names, rows, isCut } = await load((count) => setState({ count }));
      download(file, "text/csv", csvOf(names, rows));
      setState({ note: isCut && texts.cut(rows.length) });
    } catch (error) {
      setState({ error: texts.failed(error.message) });
    }
  };
  const isRunning = state.count !== undefined;
  return html`<button type="button" class="quiet" disabled=${isRunning} onClick=${store}>${isRunning ? texts.reading(state.count) : texts.store}</button>
    ${state.note && html`<p class="said" role="status">${state.note}</p>`}
    ${state.error && html`<p class="said error" role="alert">${state.error}</p>`}`;
}

/** Returns rows as CSV. What a spreadsheet would run as a formula gets a quote before it. Numbers stay numbers. */
export function csvOf(names, rows) {
  const cell = (value) => {
    if (typeof value === "number") return String(value);
    const text = value === undefined || value === null ? "" : String(value);
    const safe = text.replace(FORMULA, "$1'");
    return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [names, ...rows.map((row) => names.map((name) => row[name]))].map((line) => line.map(cell).join(",")).join("\r\n");
}
