// Event sinks: what each has not accepted yet, with its answers, and the delivery of that once more.

import { html, useState } from "../vendor/preact.js";
import { Action } from "./action.js";
import { read } from "./api.js";
import { durationOf } from "./formats.js";
import { appFilter, List } from "./list.js";
import { Loaded, useLoaded } from "./loading.js";
import { Badge, Time } from "./parts.js";
import { hrefOf } from "./route.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";
import { Who } from "./users.js";

const texts = TEXTS.sinksPage;

function State({ row }) {
  if (!row.exists) return html`<${Badge} text=${texts.deleted} />`;
  if (row.fault) return html`<span class="why"><${Badge} tone="bad" text=${texts.broken} /><small class="muted">${row.fault}</small></span>`;
  return html`<${Badge} tone=${row.dead ? "bad" : "good"} text=${row.dead ? texts.failing : texts.works} />`;
}

const SINKS = [
  { id: "sink", title: texts.sink, of: (row) => html`<a href=${hrefOf(["configs", row.app, "events", row.sink])}><strong>${row.sink}</strong></a>` },
  { id: "app", title: TEXTS.list.app, of: (row) => row.app },
  { id: "state", title: texts.state, of: (row) => html`<${State} row=${row} />` },
  { id: "waiting", title: texts.waiting, number: true, of: (row) => row.waiting },
  { id: "dead", title: texts.dead, number: true, of: (row) => row.dead },
  { id: "oldest", title: texts.oldest, number: true, of: (row) => durationOf(row.oldest_s) },
];
const EVENTS = [
  { id: "event", title: texts.event, of: (row) => html`<span class="answers"><strong>${row.event}</strong>
    <small class="muted"><a href=${hrefOf(["configs", row.app, "events", row.sink])}>${row.sink}</a></small></span>` },
  { id: "status", title: texts.status, of: (row) => html`<${Badge} state=${row.status} text=${texts.statuses[row.status]} />` },
  { id: "answer", title: texts.answer, of: (row) => html`<span class="why">${row.error ?? "–"}<small class="muted">${texts.attempts(row.attempts)}${row.status === "waiting" && html` · ${texts.due} <${Time} at=${row.due_at} />`}</small></span>` },
  { id: "user", title: texts.user, of: (row) => (row.user_id ? html`<${Who} row=${row} />` : "–") },
  { id: "at", title: texts.at, sorts: true, of: (row) => html`<${Time} at=${row.time} />` },
];

export function Sinks({ route, apps, canEdit }) {
  const [done, setDone] = useState({ changes: 0 });
  const sinks = useLoaded(() => read("/events/sinks"), [done.changes]);
  const retry = (row, body) => ({ send }) => send("POST", `/events/${encodeURIComponent(row.app)}/${encodeURIComponent(row.sink)}/retry`, body);
  const retried = (answer) => setDone(({ changes }) => ({ changes: changes + 1, count: answer.retried }));
  const ofSink = (row) => row.exists && row.waiting + row.dead > 0 && html`<${Action} title=${texts.retryAll} text=${texts.retryAllText(row.sink)} reason onRun=${retry(row, {})} onDone=${retried} />`;
  const ofEvent = (row) => html`<${Action} title=${texts.retry} text=${texts.retryText(row.event)} reason onRun=${retry(row, { event_id: row.event_id })} onDone=${retried} />`;
  const withActions = (columns, of) => (canEdit ? [...columns, { id: "actions", title: "", of }] : columns);
  const names = [...new Set((sinks.value?.sinks ?? []).map((row) => row.sink))];
  const filters = [appFilter(apps), { id: "sink", title: texts.sink, options: names.map((name) => [name, name]) }, { id: "status", title: texts.status, options: Object.entries(texts.statuses) }];
  return html`<div><p class="lead">${texts.lead}</p>
    ${done.count !== undefined && html`<p class="good" role="status">${texts.retried(done.count)}</p>`}
    <${Loaded} state=${sinks}>${(value) => html`<${Table} label=${texts.title} columns=${withActions(SINKS, ofSink)} empty=${texts.none} rows=${value.sinks.map((row) => ({ ...row, key: `${row.app}/${row.sink}` }))} />`}<//>
    <h2>${texts.events}</h2>
    <${List} key=${done.changes} label=${texts.events} parts=${["engagement", "sinks"]} route=${route} path="/events" field="events" columns=${withActions(EVENTS, ofEvent)}
      keyOf=${(row) => `${row.sink} ${row.event_id}`} filters=${filters} empty=${texts.noEvents} /></div>`;
}
