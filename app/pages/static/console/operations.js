// Operations: whether the parts of this server are ready, costs and limits, what operators have changed, and who they are.

import { html, useState } from "../vendor/preact.js";
import { Action } from "./action.js";
import { read } from "./api.js";
import { ACTION_OPTIONS, actionOf, actorOf, subjectOf } from "./audit.js";
import { Costs } from "./costs.js";
import { FailedLogins } from "./failed_logins.js";
import { Limits } from "./limits.js";
import { appFilter, List } from "./list.js";
import { Loaded, useLoaded } from "./loading.js";
import { Badge, Id, Note, Said, Stacked, Tabs, Time } from "./parts.js";
import { hrefOf } from "./route.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";
import { Changes } from "./history.js";
import { differencesOf } from "./schema.js";

const texts = TEXTS.operationsPage;
const LISTS = { readiness: Readiness, costs: Costs, limits: Limits, logins: FailedLogins, doctor: Doctor, audit: Audit, operators: Operators };

export function Operations({ route, apps, canEdit, isAdmin }) {
  const tab = route.parts[0] in LISTS ? route.parts[0] : "readiness";
  const shown = Object.keys(LISTS).filter((id) => isAdmin || id !== "operators");
  const Shown = LISTS[tab];
  return html`<div><header class="head"><h1>${TEXTS.operations}</h1></header>
    <${Tabs} label=${TEXTS.operations} current=${tab} tabs=${shown.map((id) => [id, texts.tabs[id], hrefOf(["operations", id])])} />
    <${Shown} key=${tab} ...${{ route, apps, canEdit, isAdmin }} /></div>`;
}

function Readiness() {
  const parts = useLoaded(() => fetch("/readyz", { cache: "no-store" }).then((response) => response.json()), []);
  const overview = useLoaded(() => read("/overview", {}, { background: true }), []);
  const columns = [
    { id: "part", title: texts.part, of: (row) => html`<strong>${texts.parts[row.key] ?? row.key}</strong>` },
    { id: "state", title: texts.state, of: (row) => html`<${Badge} tone=${row.cause ? "bad" : "good"} text=${row.cause ? texts.broken : texts.ready} />` },
    { id: "cause", title: texts.cause, of: (row) => row.cause },
  ];
  const processes = [
    { id: "process", title: texts.process, of: (row) => html`<code>…${row.process.slice(-8)}</code>` },
    { id: "host", title: texts.host, of: (row) => row.host },
    { id: "version", title: texts.version, of: (row) => row.version },
    { id: "since", title: texts.since, of: (row) => html`<${Time} at=${row.began_at} />` },
  ];
  return html`<div><div class="actions end"><button class="quiet small" onClick=${() => (parts.reload(), overview.reload())}>${texts.again}</button></div>
    <${Loaded} state=${parts}>${(value) => html`<${Table} label=${texts.tabs.readiness} columns=${columns}
      rows=${Object.keys(value.parts).map((key) => ({ key, cause: value.causes[key] }))} />`}<//>
    <h2>${texts.processes}</h2>
    <${Loaded} state=${overview}>${(value) => html`<${Table} label=${texts.processes} columns=${processes} rows=${value.processes.map((row) => ({ ...row, key: row.process }))} empty=${TEXTS.overviewPage.noProcesses} />`}<//></div>`;
}

const TONES = { good: "good", doubtful: "waiting", broken: "bad" };
const FINDINGS = [
  { id: "point", title: texts.point, of: (row) => html`<span>${row.area}: <strong>${row.point}</strong></span>` },
  { id: "state", title: texts.state, of: (row) => html`<${Badge} tone=${TONES[row.state]} text=${texts.found[row.state] ?? row.state} />` },
  { id: "seen", title: texts.seen, of: (row) => row.seen },
  { id: "fix", title: texts.todo, of: (row) => html`<span class="todo">${[row.why, row.fix].filter(Boolean).join(" ")}</span>` },
];
const ORDER = ["broken", "doubtful", "good"];

/** The last report of `python -m app doctor`, what is broken first. */
function Doctor() {
  const state = useLoaded(() => read("/doctor"), []);
  return html`<${Loaded} state=${state}>${({ report }) => {
    if (!report) return html`<p class="empty">${texts.noReport} <${Id} value=${texts.doctor} short=${false} /></p>`;
    const rows = report.findings.map((row, index) => ({ ...row, key: index })).sort((one, other) => ORDER.indexOf(one.state) - ORDER.indexOf(other.state));
    return html`<div><p class="lead">${texts.checked(report.host)} <${Time} at=${report.checked_at} />. ${texts.runAgain} <${Id} value=${texts.doctor} short=${false} /></p>
      <${Table} label=${texts.tabs.doctor} columns=${FINDINGS} rows=${rows} /></div>`;
  }}<//>`;
}

const AUDIT = [
  { id: "at", title: texts.at, sorts: true, of: (row) => html`<${Time} at=${row.at} />` },
  { id: "actor", title: texts.action, of: (row) => html`<${Stacked} below=${actionOf(row.action)}><strong class="clip" title=${row.actor}>${actorOf(row.actor)}</strong><//>` },
  { id: "subject", title: texts.subject, of: (row) => html`<${Subject} row=${row} />` },
  { id: "reason", title: texts.reason, of: (row) => html`<${Said} text=${row.reason} />` },
  { id: "changes", title: texts.changes, of: (row) => (row.before || row.after) && html`<details><summary>${texts.show}</summary><${Changes} changes=${differencesOf(row.before ?? {}, row.after ?? {})} /></details>` },
];

function Subject({ row }) {
  const text = html`<${Stacked} below=${row.app}><span title=${row.name}>${subjectOf(row)}</span><//>`;
  const links = { user: ["users", row.app, row.name], webhook: ["money", "webhooks", row.name] };
  const parts = links[row.kind] ?? (row.action.startsWith("config.") ? ["configs", row.app, row.kind, row.name] : null);
  return parts && row.app ? html`<a href=${hrefOf(parts)}>${text}</a>` : text;
}

function Audit({ route, apps }) {
  return html`<${List} label=${texts.tabs.audit} parts=${["operations", "audit"]} route=${route} path="/audit" field="changes" columns=${AUDIT} keyOf=${(row) => row.audit_id} empty=${texts.noAudit} filters=${[
    { id: "name", title: texts.name, search: true },
    { id: "actor", title: texts.actor, search: true },
    appFilter(apps),
    { id: "action", title: texts.action, options: ACTION_OPTIONS },
  ]} />`;
}

const ROLES = ["viewer", "editor", "admin"].map((id) => [id, texts.roles[id]]);

const EXPIRY = { id: "expires_at", title: TEXTS.operatorsPage.expires, type: "datetime-local", help: TEXTS.operatorsPage.expiresHelp };
const expiryOf = ({ expires_at: at }) => (at ? { expires_at: new Date(at).toISOString() } : {});

function Operators({ route, isAdmin }) {
  const [state, setState] = useState({ changes: 0 });
  if (!isAdmin) return html`<p class="empty">${texts.needsAdmin}</p>`;
  const changed = (answer) => setState({ changes: state.changes + 1, token: answer?.token });
  const at = (row) => `/operators/${encodeURIComponent(row.name)}`;
  const columns = [
    { id: "name", title: texts.name, of: (row) => html`<strong>${row.name}</strong>` },
    { id: "role", title: texts.role, of: (row) => texts.roles[row.role] },
    { id: "used", title: texts.lastUsed, of: (row) => html`<${Time} at=${row.last_used_at} />` },
    { id: "expires", title: texts.expires, of: (row) => (row.expired ? html`<${Badge} tone="bad" text=${texts.expired} />` : html`<${Time} at=${row.expires_at} />`) },
    { id: "actions", title: "", of: (row) => html`<div class="actions">
      <${Action} title=${texts.changeRole} text=${texts.changeRoleText(row.name)} reason fields=${[{ id: "role", title: texts.role, options: ROLES, required: true, value: row.role }, EXPIRY]} onRun=${({ values, send }) => send("PUT", at(row), { role: values.role, ...expiryOf(values) })} onDone=${changed} />
      <${Action} title=${texts.rotate} text=${texts.rotateText(row.name)} danger name=${row.name} reason onRun=${({ send }) => send("POST", `${at(row)}/rotate`, {})} onDone=${changed} />
      <${Action} title=${texts.remove} text=${texts.removeText(row.name)} danger name=${row.name} reason onRun=${({ send }) => send("DELETE", at(row))} onDone=${changed} /></div>` },
  ];
  const add = ({ values, send }) => send("POST", "/operators", { name: values.name, role: values.role, ...expiryOf(values) });
  return html`<div><p class="actions end"><${Action} title=${texts.add} primary text=${texts.addText} fields=${[{ id: "name", title: texts.name, required: true }, { id: "role", title: texts.role, options: ROLES, required: true, value: "viewer" }, EXPIRY]} reason onRun=${add} onDone=${changed} /></p>
    ${state.token && html`<${Note} tone="waiting" title=${texts.token}><${Id} value=${state.token} short=${false} /> ${texts.tokenHelp}<//>`}
    <${List} key=${state.changes} label=${texts.tabs.operators} parts=${["operations", "operators"]} route=${route} path="/operators" field="operators" columns=${columns} keyOf=${(row) => row.name} /></div>`;
}
