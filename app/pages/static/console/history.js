// The revisions of a config with their authors, what changed since one of them, and its restoration.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { configPath, read, write } from "./api.js";
import { authorOf } from "./audit.js";
import { ifUnchanged, isConflict } from "./conditions.js";
import { Loaded, useLoaded } from "./loading.js";
import { Time } from "./parts.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";

const SIZE = 25;
const texts = TEXTS.config;
const restoring = TEXTS.restore;

export function Changes({ changes }) {
  if (!changes.length) return html`<p class="muted">${texts.unchanged}</p>`;
  const text = (side) => (typeof side === "string" ? side : JSON.stringify(side));
  return html`<dl class="changes">${changes.map((change) => html`<dt key=${change.path}><code>${change.path || "/"}</code></dt>
    <dd>${change.before !== undefined && html`<del aria-label=${texts.was}>${text(change.before)}</del>`}
      ${change.after !== undefined && html`<ins aria-label=${texts.becomes}>${text(change.after)}</ins>`}</dd>`)}</dl>`;
}

export function History({ config, canEdit, onRestored }) {
  const [before, setBefore] = useState(undefined);
  const state = useLoaded(() => read(`${configPath(config)}/revisions`, { size: SIZE, before }), [before]);
  const [compared, setCompared] = useState(null);
  const [chosen, setChosen] = useState(null);
  const compare = async (revision) => {
    const answer = await read(`${configPath(config)}/diff`, { from: revision, to: config.revision });
    setCompared({ revision, changes: answer.changes });
  };
  const actions = (row) => row.revision === config.revision
    ? !row.deleted && html`<span class="badge good">${restoring.current}</span>`
    : html`<div class="actions">
      <button class="quiet small" onClick=${() => compare(row.revision)}title=${texts.compare}>${restoring.compare}</button>
      ${canEdit && !row.deleted && html`<button class="quiet small" onClick=${() => setChosen(row.revision)} aria-label=${restoring.title(row.revision)}>${restoring.restore}</button>`}
    </div>`;
  const columns = [
    { id: "revision", title: texts.revision, of: (row) => html`<span>${row.revision} ${row.deleted && html`<span class="badge bad">${texts.deleted}</span>`}</span>` },
    { id: "updated_at", title: texts.updated, of: (row) => html`<${Time} at=${row.updated_at} />` },
    { id: "author", title: texts.author, of: (row) => authorOf(row.author) },
    { id: "comment", title: restoring.reason, of: (row) => row.comment },
    { id: "actions", title: "", of: actions },
  ];
  return html`
    <${Loaded} state=${state}>${(value) => html`<${Table} label=${texts.history} columns=${columns}
      rows=${value.revisions.map((row) => ({ ...row, key: row.revision }))} />
      ${(before || value.next !== undefined) && html`<nav class="pager" aria-label=${TEXTS.list.pages}>
        ${before && html`<button class="quiet" onClick=${() => setBefore(undefined)}>${restoring.newest}</button>`}
        ${value.next !== undefined && html`<button class="quiet" onClick=${() => setBefore(value.next)}>${restoring.older}</button>`}</nav>`}`}<//>
    ${compared && html`<h2>${restoring.compared(compared.revision)}</h2><${Changes} changes=${compared.changes} />`}
    ${chosen !== null && html`<${Restore} config=${config} revision=${chosen} onRestored=${onRestored} onClose=${() => setChosen(null)} />`}`;
}

/** A dialog that shows what the restoration of a revision changes, and asks why. */
function Restore({ config, revision, onRestored, onClose }) {
  const dialog = useRef();
  const [why, setWhy] = useState("");
  const [error, setError] = useState("");
  const state = useLoaded(() => read(`${configPath(config)}/diff`, { from: config.revision, to: revision }), [revision]);
  useEffect(() => dialog.current.showModal(), []);
  const submit = async (event) => {
    event.preventDefault();
    try {
      await write("POST", `${configPath(config)}/rollback`, { revision, comment: why.trim() }, ifUnchanged(config));
      onRestored(revision);
    } catch (failure) {
      setError(isConflict(failure) ? `${TEXTS.configForm.conflict} ${restoring.again}` : failure.message);
    }
  };
  const isSame = state.value?.changes.length === 0 && !config.isDeleted;
  const title = restoring.title(revision);
  return html`<dialog class="wide" ref=${dialog} onClose=${onClose} aria-labelledby="restore-title">
    <form onSubmit=${submit}>
      <h2 id="restore-title">${title}</h2>
      <p>${isSame ? restoring.same(revision) : config.isDeleted ? restoring.all : restoring.text(revision)}</p>
      <${Loaded} state=${state}>${({ changes }) => changes.length > 0 && html`<h3>${restoring.changes}</h3><${Changes} changes=${changes} />`}<//>
      ${!isSame && html`<label>${restoring.reason}<input required maxlength="500" value=${why} onInput=${(event) => setWhy(event.currentTarget.value)} />
        <small>${TEXTS.action.reasonHelp}</small></label>`}
      ${error && html`<p class="error" role="alert">${error}</p>`}
      <div class="actions end">
        <button type="button" class="quiet" onClick=${onClose}>${TEXTS.cancel}</button>
        ${!isSame && html`<button>${title}</button>`}
      </div>
    </form>
  </dialog>`;
}
