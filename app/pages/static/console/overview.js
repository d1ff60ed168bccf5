// The overview: what all server processes do now. It is live while the page is visible.

import { html, useEffect, useState } from "../vendor/preact.js";
import { Attention } from "./attention.js";
import { actionOf, actorOf, subjectOf } from "./audit.js";
import { watch } from "./events.js";
import { amountOf, costOf } from "./formats.js";
import { Badge, Stacked, Time } from "./parts.js";
import { hrefOf } from "./route.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.overviewPage;
const KEPT = 60;
/** A line through fewer values looks like a speck. */
const FEWEST = 5;

const VENDORS = [
  { id: "vendor", title: texts.vendor, of: (row) => html`<${Stacked} below=${texts.stages[row.stage] ?? row.stage}><strong>${row.vendor}</strong><//>` },
  { id: "attempts", number: true, title: texts.attempts, of: (row) => row.attempts },
  { id: "failed", number: true, title: texts.failed, of: (row) => (row.failed ? html`<${Badge} tone="bad" text=${`${row.failed} (${Math.round((row.failed / row.attempts) * 100)}%)`} />` : 0) },
  { id: "p50", number: true, title: texts.p50, of: (row) => msOf(row.p50_ms) },
  { id: "p95", number: true, title: texts.p95, of: (row) => msOf(row.p95_ms) },
];
const ERRORS = [
  { id: "name", title: texts.errorType, of: (row) => html`<code>${row.name}</code>` },
  { id: "count", number: true, title: texts.responses, of: (row) => row.count },
];
const PROCESSES = [
  { id: "process", title: texts.process, of: (row) => html`<code title=${row.process}>…${row.process.slice(-8)}</code>` },
  { id: "host", title: texts.host, of: (row) => row.host },
  { id: "version", title: texts.version, of: (row) => row.version },
  { id: "state", title: texts.state, of: (row) => html`<${Badge} tone=${row.draining ? "waiting" : "good"} text=${row.draining ? texts.draining : texts.ready} />` },
  { id: "streams", number: true, title: texts.streams, of: (row) => row.streams },
  { id: "connections", number: true, title: texts.connections, of: (row) => row.connections },
  { id: "since", title: texts.since, of: (row) => html`<${Time} at=${row.began_at} />` },
];

const msOf = (ms) => (ms === undefined ? "–" : ms < 1_000 ? `${ms}\u00a0ms` : `${(ms / 1_000).toFixed(2)}\u00a0s`);
const sum = (rows) => rows.reduce((total, { count }) => total + count, 0);
const kindsOf = (rows) => rows.filter(({ count }) => count).map(({ name, count }) => texts.kind(name, count)).join(", ");

export function Overview() {
  const [seen, setSeen] = useState([]);
  const [live, setLive] = useState(true);
  useEffect(() => {
    let stop = () => {};
    const follow = () => {
      stop();
      stop = document.hidden ? () => {} : watch("/admin/api/overview/events", (value) => setSeen((before) => [...before, value].slice(-KEPT)), setLive);
    };
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      stop();
      document.removeEventListener("visibilitychange", follow);
    };
  }, []);
  const now = seen.at(-1);
  return html`<header class="head"><h1>${TEXTS.overview}</h1>
      ${now && html`<${Badge} tone=${live ? "good" : "bad"} text=${live ? texts.live_now : texts.stopped} />`}</header>
    ${now ? html`<${Figures} now=${now} seen=${seen} />` : html`<p class="muted" role="status">${TEXTS.loading}…</p>`}`;
}

function Figures({ now, seen }) {
  const trend = (of) => seen.map(of);
  return html`
    <${Attention} rows=${now.attention} />
    <div class="tiles">
      <${Tile} title=${texts.live} value=${sum(now.live)} note=${sum(now.live) ? `${kindsOf(now.live)} · ${texts.readers(now.readers)}` : texts.noneRuns} values=${trend((each) => sum(each.live))} href=${hrefOf(["streams"])} />
      <${Tile} title=${texts.perMinute} value=${sum(now.ended_per_minute)} note=${kindsOf(now.ended_per_minute)} values=${trend((each) => sum(each.ended_per_minute))} />
      <${Tile} title=${texts.requests} value=${Math.round(now.requests_per_minute)} note="" values=${trend((each) => each.requests_per_minute)} />
      <${Tile} title=${texts.waiting} value=${now.jobs_waiting} note=${now.oldest_job_s ? texts.oldest(now.oldest_job_s) : ""} values=${trend((each) => each.jobs_waiting)} href=${hrefOf(["jobs"])} />
      <${Tile} title=${texts.money} value=${now.money.length ? amountOf(now.money[0].amount, now.money[0].currency) : texts.nothing}
        note=${now.money.map((row, index) => joinMoney(row, index)).join(" · ")} href=${hrefOf(["money"])} />
      <${Tile} title=${texts.cost} value=${now.cost.length ? costOf(now.cost[0].amount, now.cost[0].currency) : texts.nothing}
        note=${now.cost.slice(1).map((row) => costOf(row.amount, row.currency)).join(" · ") || texts.costNote} />
    </div>
    <div class="columns">
      <section><h2>${texts.vendors}</h2><p class="lead">${texts.vendorsLead}</p>
        <${Table} label=${texts.vendors} columns=${VENDORS} rows=${now.vendors.map((row) => ({ ...row, key: `${row.stage} ${row.vendor}` }))} empty=${texts.noVendors} /></section>
      <section><h2>${texts.errors}</h2><p class="lead">${texts.errorsLead}</p>
        <${Table} label=${texts.errors} columns=${ERRORS} rows=${now.errors.map((row) => ({ ...row, key: row.name }))} empty=${texts.noErrors} /></section>
    </div>
    <h2>${texts.changes}</h2>
    ${now.changes.length ? html`<ol class="changes-list">${now.changes.map((row) => html`<li key=${row.audit_id}>
      <span><strong>${actorOf(row.actor)}</strong> ${actionOf(row.action)} <span class="muted">${subjectOf(row)}</span></span>
      ${row.reason && html`<small class="muted">${row.reason}</small>`}<${Time} at=${row.at} /></li>`)}</ol>` : html`<p class="empty">${texts.noChanges}</p>`}
    <h2>${texts.processes}</h2><p class="lead">${texts.processesLead}</p>
    <${Table} label=${texts.processes} columns=${PROCESSES} rows=${now.processes.map((row) => ({ ...row, key: row.process }))} empty=${texts.noProcesses} />`;
}

const joinMoney = (row, index) => (index ? `${amountOf(row.amount, row.currency)}, ${texts.payments(row.payments)}` : texts.payments(row.payments));

function Tile({ title, value, note, values, href, tone = "" }) {
  const inner = html`<span class="name">${title}</span><strong class=${tone}>${value}</strong>
    ${values && html`<${Line} title=${texts.trend(title)} values=${values} />`}<small class="muted">${note || "\u00a0"}</small>`;
  return href ? html`<a class="tile" href=${href}>${inner}</a>` : html`<div class="tile">${inner}</div>`;
}

/** A line of the last values, the newest at the right and marked. Its place is empty at first. */
function Line({ title, values }) {
  if (values.length < FEWEST) return html`<span class="line"></span>`;
  const most = Math.max(1, ...values);
  const points = values.map((value, index) => `${100 - (values.length - 1 - index) * (100 / (KEPT - 1))},${28 - (value / most) * 26}`);
  return html`<svg class="line" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label=${title}>
    <polyline points=${points.join(" ")} vector-effect="non-scaling-stroke" />
    <path class="newest" d=${`M${points.at(-1)}h0`} vector-effect="non-scaling-stroke" /></svg>`;
}
