// Jobs: the held ones with their causes, which are run again or deleted, one or all with one cause; queues; schedules.

import { html, useState } from "../vendor/preact.js";
import { Action } from "./action.js";
import { read } from "./api.js";
import { durationOf } from "./formats.js";
import { appFilter, List } from "./list.js";
import { Loaded, useLoaded } from "./loading.js";
import { Badge, Crumbs, Facts, Id, Note, Tabs, Time } from "./parts.js";
import { hrefOf } from "./route.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";
import { UserLink } from "./users.js";

const texts = TEXTS.jobsPage;
const TABS = { held: Held, queues: Queues, schedules: Schedules };
const held = (group) => hrefOf(["jobs", "held", group]);

export function Jobs({ route, apps, canEdit }) {
  const tab = route.parts[0] in TABS ? route.parts[0] : "held";
  const Shown = TABS[tab];
  return html`<div><header class="head"><h1>${TEXTS.jobs}</h1></header>
    <${Tabs} label=${TEXTS.jobs} current=${tab} tabs=${Object.keys(TABS).map((id) => [id, texts.tabs[id], hrefOf(["jobs", id])])} />
    <${Shown} key=${tab} route=${route} apps=${apps} canEdit=${canEdit} /></div>`;
}

/** Why an attempt failed: what the error says, and what its type means. */
const Why = ({ row, children }) => html`<span class="why">${children ?? row.error ?? texts.causes[row.error_type] ?? row.error_type}
  <small class="muted">${row.error && texts.causes[row.error_type] ? texts.causes[row.error_type] : row.error_type}</small></span>`;
const config = ({ app, kind, name }) => html`<li><a href=${hrefOf(["configs", app, kind, name])}>${kind}/${name}</a></li>`;

function About({ row }) {
  if (row.order_id && row.user_id) return html`<a href=${hrefOf(["users", row.app, row.user_id, "orders", row.order_id])}>${texts.order}</a>`;
  if (row.user_id) return html`<${UserLink} app=${row.app} user=${row.user_id} />`;
  if (row.webhook_id) return html`<a href=${hrefOf(["money", "webhooks", row.webhook_id])}>${texts.webhook}</a>`;
  return html`<span class="muted">${row.app ?? texts.allApps}</span>`;
}

const Details = ({ row }) => html`<details><summary>${texts.details}</summary>
  <${Facts} rows=${[
    [texts.id, html`<${Id} value=${String(row.job_id)} />`], [texts.attempts, row.attempts], [TEXTS.list.app, row.app],
    [texts.process, row.process && html`<${Id} value=${row.process} />`], [texts.logLine, html`<code>job.held job_id=${row.job_id}</code>`],
  ]} />
  <pre tabindex="0" aria-label=${texts.message}>${JSON.stringify(row.message, null, 2)}</pre></details>`;

const JOBS = [
  { id: "job", title: texts.job, of: (row) => html`<strong>${row.job}</strong>` },
  { id: "why", title: texts.cause, of: (row) => html`<div><${Why} row=${row} /><${Details} row=${row} /></div>` },
  { id: "about", title: texts.about, of: (row) => html`<${About} row=${row} />` },
  { id: "configs", title: texts.configs, of: (row) => (row.configs.length ? html`<ul class="plain">${row.configs.toReversed().map(config)}</ul>` : html`<span class="muted">–</span>`) },
  { id: "at", title: texts.at, sorts: true, of: (row) => html`<${Time} at=${row.held_at} />` },
];

function Held({ route, apps, canEdit }) {
  const [changes, setChanges] = useState(0);
  const [done, setDone] = useState("");
  const [, group] = route.parts;
  const { app, job, error } = route.query;
  const groups = useLoaded(() => read("/jobs/held/groups", { app, job, error }), [app, job, error, changes]);
  const changed = (text) => {
    setDone(text);
    setChanges((count) => count + 1);
  };
  const columns = canEdit ? [...JOBS, { id: "actions", title: "", of: (row) => html`<${JobActions} row=${row} onDone=${() => changed(texts.done)} />` }] : JOBS;
  const filters = [appFilter(apps), { id: "job", title: texts.job, search: true }, { id: "error", title: texts.errorType, search: true }];
  return html`<div>
    ${group ? html`<${Crumbs} steps=${[[texts.allGroups, hrefOf(["jobs", "held"])], [group]]} />` : groups.value?.groups.length > 0 && html`<p class="lead">${texts.lead}</p>`}
    ${done && html`<p class="good" role="status">${done}</p>`}
    <${Loaded} state=${groups}>${(value) => html`<${Groups} rows=${value.groups.filter((row) => !group || row.group === group)} canEdit=${canEdit} onDone=${(answer, did) => changed(texts.changed(answer, texts.did[did]))} />`}<//>
    <h2>${group ? texts.inGroup : texts.jobs}</h2>
    <${List} key=${changes} label=${texts.jobs} parts=${group ? ["jobs", "held", group] : ["jobs", "held"]} route=${route} path="/jobs/held" field="jobs" columns=${columns}
      keyOf=${(row) => row.job_id} fixed=${{ group }} filters=${group ? [] : filters} empty=${app || job || error ? undefined : texts.noHeld} /></div>`;
}

const GROUPS = [
  { id: "why", title: texts.cause, of: (row) => html`<${Why} row=${row}><a href=${held(row.group)}><strong>${row.error ?? texts.causes[row.error_type] ?? row.error_type}</strong></a><//>` },
  { id: "job", title: texts.job, of: (row) => row.job },
  { id: "count", title: texts.count, number: true, of: (row) => row.count },
  { id: "first", title: texts.first, of: (row) => html`<${Time} at=${row.first_at} />` },
  { id: "last", title: texts.last, of: (row) => html`<${Time} at=${row.last_at} />` },
];

function Groups({ rows, canEdit, onDone }) {
  if (!rows.length) return null;
  const change = (action, { group }) => ({ send }) => send("POST", `/jobs/held/${action}`, { group });
  const actions = (row) => html`<div class="actions">
    <${Action} title=${texts.retryAll} text=${texts.retryAllText(row.count, row.job)} reason onRun=${change("retry", row)} onDone=${(answer) => onDone(answer, "retry")} />
    <${Action} title=${texts.dropAll} text=${texts.dropAllText(row.count, row.job)} reason danger name=${row.job} onRun=${change("drop", row)} onDone=${(answer) => onDone(answer, "drop")} /></div>`;
  return html`<${Table} label=${texts.groups} columns=${canEdit ? [...GROUPS, { id: "actions", title: "", of: actions }] : GROUPS} rows=${rows.map((row) => ({ ...row, key: row.group }))} />`;
}

const JobActions = ({ row, onDone }) => html`<div class="actions">
  <${Action} title=${texts.retry} text=${texts.retryText(row.job, row.job_id)} reason onRun=${({ send }) => send("POST", `/jobs/held/${row.job_id}/retry`)} onDone=${onDone} />
  <${Action} title=${texts.drop} text=${texts.dropText(row.job, row.job_id)} reason danger onRun=${({ send }) => send("DELETE", `/jobs/held/${row.job_id}`)} onDone=${onDone} /></div>`;

const TONES = { doing: "good", failed: "bad" };
const COUNTS = [
  { id: "job", title: texts.job, of: (row) => html`<strong>${row.job}</strong>` },
  { id: "status", title: texts.status, of: (row) => html`<${Badge} tone=${TONES[row.status] ?? ""} text=${texts.statuses[row.status]} />` },
  { id: "count", title: texts.count, number: true, of: (row) => row.count },
  { id: "oldest", title: texts.oldest, number: true, of: (row) => durationOf(row.oldest_s) },
];

function Queues() {
  const state = useLoaded(() => read("/jobs"), []);
  return html`<${Loaded} state=${state}>${(value) => html`<${Table} label=${texts.tabs.queues} columns=${COUNTS} empty=${texts.noJobs}
    rows=${value.jobs.map((row) => ({ ...row, key: `${row.job} ${row.status}` }))} />`}<//>`;
}

/** Says in words when a schedule runs, or returns `null` if it is not a simple one. */
function timesOf(schedule) {
  const [minute, hour, day, month, weekday, second] = schedule.split(" ");
  const step = (field) => (field === "*" ? 1 : Number(/^\*\/(\d+)$/.exec(field)?.[1]));
  const only = (...fields) => fields.every((field) => field === "*");
  if (!only(day, month, weekday)) return null;
  if (second !== undefined) return only(minute, hour) && step(second) ? texts.every(step(second), "second") : null;
  if (hour === "*") return step(minute) ? texts.every(step(minute), "minute") : null;
  if (minute === "0" && step(hour)) return texts.every(step(hour), "hour");
  return /^\d+$/.test(`${minute}${hour}`) ? texts.daily(`${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`) : null;
}

const OUTCOMES = { succeeded: "good", held: "bad", waiting: "waiting" };
const SCHEDULES = [
  { id: "job", title: texts.job, of: (row) => html`<strong>${row.job}</strong>` },
  { id: "times", title: texts.times, of: (row) => html`<span title=${row.schedule}>${timesOf(row.schedule) ?? html`<code>${row.schedule}</code>`}</span>` },
  { id: "last", title: texts.lastRun, of: (row) => (row.last_at ? html`<${Time} at=${row.last_at} />` : texts.never) },
  { id: "outcome", title: texts.outcome, of: (row) => row.last && html`<${Badge} tone=${OUTCOMES[row.last] ?? ""} text=${texts.outcomes[row.last]} />` },
  { id: "next", title: texts.nextRun, of: (row) => html`<${Time} at=${row.next_at} />` },
];

function Schedules() {
  const state = useLoaded(() => read("/jobs/schedules"), []);
  return html`<${Loaded} state=${state}>${(value) => html`
    ${value.workers ? html`<p class="lead">${texts.workers(value.workers)}</p>` : html`<${Note} tone="bad" title=${texts.noWorker}>${texts.noWorkerText}<//>`}
    <${Table} label=${texts.tabs.schedules} columns=${SCHEDULES} empty=${texts.noSchedules} rows=${value.schedules.map((row) => ({ ...row, key: row.job }))} />`}<//>`;
}
