// The queues of jobs, and the held jobs, which can be run again or deleted.

import { html, useState } from "../vendor/preact.js";
import { read, write } from "./api.js";
import { Confirm } from "./confirm.js";
import { Loaded, useLoaded } from "./loading.js";
import { hrefOf } from "./route.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.jobsPage;
const COUNTS = [
  { id: "job", title: texts.job, of: (row) => row.job },
  { id: "status", title: texts.status, of: (row) => html`<span class="badge">${row.status}</span>` },
  { id: "count", title: texts.count, of: (row) => row.count },
  { id: "oldest", title: texts.oldest, of: (row) => `${row.oldest_s} s` },
];

export function Jobs({ route, canEdit }) {
  const { before } = route.query;
  const counts = useLoaded(() => read("/jobs"), []);
  const held = useLoaded(() => read("/jobs/held", { before }), [before]);
  const [dropping, setDropping] = useState(null);
  const [result, setResult] = useState(null);
  const act = async (method, path) => {
    setResult(null);
    try {
      await write(method, path);
      setResult({ text: texts.done });
    } catch (error) {
      setResult({ text: error.message, failed: true });
    }
    setDropping(null);
    counts.reload();
    held.reload();
  };
  const columns = [
    { id: "id", title: "Id", of: (row) => row.job_id },
    { id: "job", title: texts.job, of: (row) => row.job },
    { id: "message", title: TEXTS.config.json, of: (row) => html`<code>${JSON.stringify(row.message)}</code>` },
    { id: "attempts", title: texts.attempts, of: (row) => row.attempts },
    { id: "at", title: texts.at, of: (row) => row.held_at },
  ];
  const actions = (row) => html`<div class="actions">
    <button class="quiet small" onClick=${() => act("POST", `/jobs/held/${row.job_id}/retry`)}>${texts.retry}</button>
    <button class="quiet small" onClick=${() => setDropping(row.job_id)}>${texts.drop}</button>
  </div>`;
  if (canEdit) columns.push({ id: "actions", title: "", of: actions });
  const drop = () => act("DELETE", `/jobs/held/${dropping}`);
  return html`<div><header class="head"><h1>${TEXTS.jobs}</h1></header>
    ${result && html`<p class=${result.failed ? "error" : "good"} role="status">${result.text}</p>`}
    <h2>${texts.counts}</h2>
    <${Loaded} state=${counts}>${(value) => html`<${Table} label=${texts.counts} columns=${COUNTS}
      empty=${texts.noJobs} rows=${value.jobs.map((row) => ({ ...row, key: `${row.job} ${row.status}` }))} />`}<//>
    <h2>${texts.held}</h2>
    <p class="muted">${texts.heldHelp}</p>
    <${Loaded} state=${held}>${(value) => html`
      <${Table} label=${texts.held} columns=${columns} empty=${texts.noHeld} rows=${value.jobs.map((row) => ({ ...row, key: row.job_id }))} />
      ${value.next && html`<p><a href=${hrefOf(["jobs"], { before: value.next })}>${TEXTS.list.next}</a></p>`}`}<//>
    ${dropping !== null && html`<${Confirm} text=${texts.dropHelp(dropping)} name=${String(dropping)} action=${texts.drop}
      onYes=${drop} onNo=${() => setDropping(null)} />`}</div>`;
}
