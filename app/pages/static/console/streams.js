// The streams that run now in all processes, read again every few seconds, and those that have ended.

import { html, useState } from "../vendor/preact.js";
import { Action } from "./action.js";
import { userPath } from "./api.js";
import { costOf } from "./formats.js";
import { appFilter, Choice, List } from "./list.js";
import { Badge, Id, Note, Tabs, Time } from "./parts.js";
import { go, hrefOf } from "./route.js";
import { TEXTS } from "./texts.js";
import { Who } from "./users.js";

const EVERY_MS = 3_000;
const texts = TEXTS.streamsPage;
const OUTCOMES = { answered: "good", failed: "bad" };
const TABS = { running: Running, ended: Ended };
const entriesOf = (names) => Object.entries(names);

const streamHref = (row) => hrefOf(["streams", row.app, row.stream_id]);
const Kind = ({ row, children }) => html`<span class="answers"><span class="badges"><a href=${streamHref(row)}><strong>${texts.kinds[row.kind] ?? row.kind}</strong></a>${children}</span><${Id} value=${row.stream_id} /></span>`;
const RunningKind = ({ row }) => html`<${Kind} row=${row}><${Badge} tone=${row.state === "stopping" ? "waiting" : ""} text=${texts.states[row.state] ?? row.state} /><//>`;
export const cancelPath = (row) => `${userPath(row.app, row.user_id)}/streams/${row.stream_id}/cancel`;

/** The strategy that answers, with its vendor and model. */
export const Answers = ({ row }) => row.strategy
  ? html`<span class="answers"><span>${row.strategy}</span><small class="muted">${[row.vendor, row.model].filter(Boolean).join(" · ")}</small></span>`
  : html`<span class="muted">${texts.nobody}</span>`;

export function Streams({ route, apps, canEdit }) {
  const tab = route.parts[0] in TABS ? route.parts[0] : "running";
  const Shown = TABS[tab];
  return html`<div><header class="head"><h1>${TEXTS.streams}</h1></header>
    <${Tabs} label=${TEXTS.streams} current=${tab} tabs=${Object.keys(TABS).map((id) => [id, texts.tabs[id], hrefOf(id === "running" ? ["streams"] : ["streams", id])])} />
    <${Shown} ...${{ route, apps, canEdit }} />
    <${Find} apps=${apps} /></div>`;
}

const RUNNING = [
  { id: "kind", title: texts.stream, of: (row) => html`<${RunningKind} row=${row} />` },
  { id: "answers", title: texts.answers, of: (row) => html`<${Answers} row=${row} />` },
  { id: "user", title: texts.user, of: (row) => html`<${Who} row=${row} />` },
  { id: "age", title: texts.age, number: true, sorts: true, of: (row) => texts.seconds(row.age_ms) },
  { id: "events", title: texts.events, number: true, of: (row) => row.events },
  { id: "readers", title: texts.readers, number: true, of: (row) => row.readers },
  { id: "lag", title: texts.lag, number: true, of: (row) => texts.size(row.lag_bytes) },
  { id: "process", title: texts.process, of: (row) => html`<a href=${hrefOf(["streams"], { process: row.process })} title=${row.process}><code>…${row.process.slice(-6)}</code></a>` },
];

function Running({ route, apps, canEdit }) {
  const cancel = (row) => ({ send }) => send("POST", cancelPath(row), {});
  const action = { id: "actions", title: "", of: (row) => html`<${Action} title=${texts.end} text=${texts.cancelText} reason onRun=${cancel(row)} />` };
  const above = (value) => html`<${Silent} value=${value} /><p class="muted" role="status">${texts.total(value.total, value.processes.length)}</p>`;
  const filters = [
    appFilter(apps),
    { id: "kind", title: TEXTS.list.kind, options: entriesOf(texts.kinds) },
    { id: "user_id", title: texts.user, hint: texts.userHint },
    { id: "strategy", title: texts.strategy },
    ...(route.query.process ? [{ id: "process", title: texts.process }] : []),
  ];
  return html`<p class="lead">${texts.lead}</p><${List} label=${texts.tabs.running} parts=${["streams"]} route=${route} path="/streams" field="streams" filters=${filters}
    columns=${canEdit ? [...RUNNING, action] : RUNNING} keyOf=${(row) => row.stream_id} order="created" everyMs=${EVERY_MS} above=${above} empty=${texts.none} />`;
}

/** Says which processes have not answered, so that nobody takes the list for complete. */
function Silent({ value }) {
  if (value.complete) return null;
  if (!value.silent.length) return html`<${Note} tone="bad">${texts.unknown}<//>`;
  return html`<${Note} tone="waiting" title=${texts.silent(value.silent.map((name) => `…${name.slice(-6)}`))}>${texts.silentHelp}<//>`;
}

const ENDED = [
  { id: "kind", title: texts.stream, of: (row) => html`<${Kind} row=${row}><${Badge} tone=${OUTCOMES[row.outcome] ?? ""} text=${texts.outcomes[row.outcome]} /><//>` },
  { id: "answers", title: texts.answers, of: (row) => html`<${Answers} row=${row} />` },
  { id: "user", title: texts.user, of: (row) => html`<${Who} row=${row} />` },
  { id: "attempts", title: texts.attempts, number: true, of: (row) => texts.failedOf(row.failed, row.attempts) },
  { id: "longest", title: texts.longest, number: true, of: (row) => texts.seconds(row.elapsed_ms) },
  { id: "price", title: texts.price, number: true, of: (row) => costOf(row.price, row.currency) },
  { id: "ended", title: texts.ended, of: (row) => html`<${Time} at=${row.stored_at} />` },
];

function Ended({ route, apps }) {
  const filters = [
    { ...appFilter(apps), all: "default" },
    { id: "hours", title: texts.since, options: texts.hours },
    { id: "outcome", title: texts.outcome, options: ["answered", "failed", "canceled"].map((id) => [id, texts.outcomes[id]]) },
    { id: "kind", title: TEXTS.list.kind, options: entriesOf(texts.kinds) },
    { id: "user_id", title: texts.user, hint: texts.userHint },
  ];
  const { user_id: user, outcome, kind } = route.query;
  return html`<p class="lead">${texts.endedLead}</p><${List} label=${texts.tabs.ended} parts=${["streams", "ended"]} route=${route} path="/ended_streams" field="streams"
    filters=${filters} columns=${ENDED} keyOf=${(row) => row.stream_id} empty=${user || outcome || kind ? texts.noneFound : texts.noneEnded} />`;
}

function Find({ apps }) {
  const [id, setId] = useState("");
  const [app, setApp] = useState("");
  const known = apps.length ? apps : ["default"];
  const open = (event) => {
    event.preventDefault();
    go(["streams", app || known[0], id.trim()]);
  };
  return html`<form class="toolbar by-id" role="search" aria-label=${texts.find} onSubmit=${open}>
    <label>${texts.find}<input type="search" required value=${id} onInput=${(event) => setId(event.currentTarget.value)} /></label>
    <label>${TEXTS.list.app}<${Choice} value=${app || known[0]} options=${known.map((each) => [each, each])} all=${null} onChoose=${setApp} /></label>
    <button class="quiet">${texts.open}</button>
  </form>`;
}
