// Engagement: leaderboards with their periods, emails, suppressions, predictions, image tasks and event sinks.

import { html, useState } from "../vendor/preact.js";
import { Action } from "./action.js";
import { read } from "./api.js";
import { Board } from "./board.js";
import { appFilter, List, stateFilter } from "./list.js";
import { Loaded, useLoaded } from "./loading.js";
import { Badge, Id, Said, Stacked, Tabs, Time } from "./parts.js";
import { hrefOf } from "./route.js";
import { Sinks } from "./sinks.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";
import { Who } from "./users.js";

const texts = TEXTS.engagementPage;
const user = { id: "user", title: texts.user, of: (row) => html`<${Who} row=${row} />` };
const created = { id: "at", title: texts.at, sorts: true, of: (row) => html`<${Time} at=${row.created_at} />` };
const strategy = { id: "strategy", title: texts.strategy, of: (row) => html`<strong>${row.strategy}</strong>` };
const status = { id: "status", title: texts.status, of: (row) => html`<${Badge} state=${row.status} />` };
const MAILS = [strategy, status, user, { id: "opens", title: texts.opens, of: (row) => (row.machine_opens ? texts.opened(row.opens, row.machine_opens) : row.opens) },
  { id: "id", title: texts.messageId, of: (row) => html`<${Id} value=${row.mail_id} />` }, created];
const TASKS = [
  { ...strategy, of: (row) => html`<${Stacked} below=${row.what}><strong>${row.strategy}</strong><//>` },
  { ...status, of: (row) => html`<${Badge} state=${row.status} text=${texts.taskStates[row.status]} />` },
  user,
  { id: "account", title: texts.account, of: (row) => html`<${Stacked} below=${row.account}><${Id} value=${row.host_id} /><//>` },
  { id: "error", title: texts.error, of: (row) => html`<${Said} text=${row.error} />` },
  created,
];
const filtersOf = (apps, states) => [
  appFilter(apps),
  { id: "strategy", title: texts.strategy, search: true },
  stateFilter(texts.status, states),
];
const tasks = (tab, path, states) => ({ route, apps }) => html`<${List} label=${texts.tabs[tab]} parts=${["engagement", tab]} route=${route} path=${path} field="tasks" columns=${TASKS}
  keyOf=${(row) => row.task_id} empty=${texts.empty[tab]} filters=${filtersOf(apps, states)} />`;

const LISTS = {
  boards: Boards,
  mails: ({ route, apps }) => html`<${List} label=${texts.tabs.mails} parts=${["engagement", "mails"]} route=${route} path="/mails" field="mails" columns=${MAILS} keyOf=${(row) => row.mail_id} empty=${texts.empty.mails}
    filters=${filtersOf(apps, ["sending", "waiting", "sent", "refused", "suppressed"])} />`,
  suppressions: Suppressions,
  predictions: tasks("predictions", "/predictions", ["starting", "processing", "succeeded", "failed", "canceled"]),
  images: tasks("images", "/image_tasks", ["pending", "processing", "succeeded", "failed"]),
  sinks: Sinks,
};

export function Engagement({ route, apps, canEdit }) {
  const tab = route.parts[0] in LISTS ? route.parts[0] : "boards";
  if (tab === "boards" && route.parts.length >= 3) return html`<${Board} route=${route} canEdit=${canEdit} />`;
  const Shown = LISTS[tab];
  return html`<div><header class="head"><h1>${TEXTS.engagement}</h1></header>
    <${Tabs} label=${TEXTS.engagement} current=${tab} tabs=${Object.keys(LISTS).map((id) => [id, texts.tabs[id], hrefOf(["engagement", id])])} />
    <${Shown} key=${tab} route=${route} apps=${apps} canEdit=${canEdit} /></div>`;
}

const BOARDS = [
  { id: "name", title: texts.board, of: (row) => html`<a href=${hrefOf(["engagement", "boards", row.app, row.name])}><strong>${row.name}</strong></a>` },
  { id: "app", title: TEXTS.list.app, of: (row) => row.app },
  { id: "config", title: texts.config, of: (row) => html`<a href=${hrefOf(["configs", row.app, "leaderboards", row.name])}>${texts.openConfig}</a>` },
];

function Boards() {
  const state = useLoaded(() => read("/configs", { kind: "leaderboards" }), []);
  return html`<${Loaded} state=${state}>${(value) => html`<${Table} label=${texts.tabs.boards} columns=${BOARDS} empty=${texts.noBoards}
    rows=${value.configs.map((row) => ({ ...row, key: `${row.app}/${row.name}` }))} />`}<//>`;
}

const SUPPRESSED = [
  { id: "address", title: texts.address, of: (row) => html`<strong>${row.address}</strong>` },
  { id: "strategy", title: texts.strategy, of: (row) => row.strategy || texts.allStrategies },
  { id: "reason", title: texts.reason, of: (row) => texts.reasons[row.reason] ?? row.reason },
  { ...created, sorts: false },
];

function Suppressions({ route, apps, canEdit }) {
  const [changes, setChanges] = useState(0);
  const app = route.query.app ?? "default"; // The server lists the suppressions of one app.
  if (!canEdit) return html`<p class="empty">${TEXTS.usersPage.needsEditor}</p>`;
  const path = (address) => `/suppressions/${encodeURIComponent(app)}/${encodeURIComponent(address)}`;
  const changed = () => setChanges(changes + 1);
  const remove = (row) => ({ send }) => send("DELETE", `${path(row.address)}?strategy=${encodeURIComponent(row.strategy)}`);
  const add = ({ values, send }) => send("PUT", path(values.address), { strategy: values.strategy });
  const actions = { id: "actions", title: "", of: (row) => html`<${Action} title=${texts.allow} text=${texts.allowText(row.address)} reason onRun=${remove(row)} onDone=${changed} />` };
  return html`<div><p class="actions end"><${Action} title=${texts.suppress} text=${texts.suppressText} reason
      fields=${[{ id: "address", title: texts.address, type: "email", required: true }, { id: "strategy", title: texts.strategyOrAll }]} onRun=${add} onDone=${changed} /></p>
    <${List} key=${changes} label=${texts.tabs.suppressions} parts=${["engagement", "suppressions"]} route=${route} path="/suppressions" field="suppressions" columns=${[...SUPPRESSED, { id: "app", title: TEXTS.list.app, of: () => app }, actions]}
      empty=${texts.empty.suppressions} keyOf=${(row) => `${row.address} ${row.strategy}`} filters=${[{ ...appFilter(apps.filter((id) => id !== "default")), all: "default" }, { id: "address", title: texts.address, search: true }]} /></div>`;
}
