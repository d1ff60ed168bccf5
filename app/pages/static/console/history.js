// The revisions of a config with their authors, what changed since one of them, and its restoration.

import { html, useState } from "../vendor/preact.js";
import { configPath, read, write } from "./api.js";
import { Confirm } from "./confirm.js";
import { dateOf } from "./formats.js";
import { Loaded, useLoaded } from "./loading.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.config;

export function Changes({ changes }) {
  if (!changes.length) return html`<p class="muted">${texts.unchanged}</p>`;
  const text = (side) => (typeof side === "string" ? side : JSON.stringify(side));
  return html`<dl class="changes">${changes.map((change) => html`<dt key=${change.path}><code>${change.path || "/"}</code></dt>
    <dd>${change.before !== undefined && html`<del aria-label=${texts.was}>${text(change.before)}</del>`}
      ${change.after !== undefined && html`<ins aria-label=${texts.becomes}>${text(change.after)}</ins>`}</dd>`)}</dl>`;
}

export function History({ config, canEdit, onSaved }) {
  const state = useLoaded(() => read(`${configPath(config)}/revisions`, { size: 100 }), []);
  const [compared, setCompared] = useState(null);
  const [restoring, setRestoring] = useState(null);
  const [error, setError] = useState("");
  const compare = async (revision) => {
    const answer = await read(`${configPath(config)}/diff`, { from: revision, to: config.revision });
    setCompared({ revision, changes: answer.changes });
  };
  const restore = async () => {
    try {
      await write("POST", `${configPath(config)}/rollback`, { revision: restoring }, { "If-Match": String(config.revision) });
      onSaved();
    } catch (failure) {
      setError(failure.message);
    }
    setRestoring(null);
  };
  const actions = (row) => row.revision !== config.revision && html`<div class="actions">
    <button class="quiet small" onClick=${() => compare(row.revision)}>${texts.compare}</button>
    ${canEdit && !row.deleted && html`<button class="quiet small" onClick=${() => setRestoring(row.revision)}>${texts.rollback}</button>`}
  </div>`;
  const columns = [
    { id: "revision", title: texts.revision, of: (row) => html`${row.revision} ${row.deleted && html`<span class="badge bad">${texts.deleted}</span>`}` },
    { id: "author", title: texts.author, of: (row) => row.author },
    { id: "comment", title: texts.comment, of: (row) => row.comment },
    { id: "updated_at", title: texts.updated, of: (row) => dateOf(row.updated_at) },
    { id: "actions", title: "", of: actions },
  ];
  return html`${error && html`<p class="error" role="alert">${error}</p>`}
    <${Loaded} state=${state}>${(value) => html`<${Table} label=${texts.history} columns=${columns}
      rows=${value.revisions.map((row) => ({ ...row, key: row.revision }))} />`}<//>
    ${compared && html`<h2>${compared.revision} → ${config.revision}</h2><${Changes} changes=${compared.changes} />`}
    ${restoring !== null && html`<${Confirm} text=${texts.restoreTitle(restoring)} name=${config.name} action=${texts.rollback}
      onYes=${restore} onNo=${() => setRestoring(null)} />`}`;
}
