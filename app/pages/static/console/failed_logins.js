// Logins that were refused, with the checks that led to it.

import { html } from "../vendor/preact.js";
import { appFilter, List } from "./list.js";
import { Id, Time } from "./parts.js";
import { TEXTS } from "./texts.js";
import { UserLink } from "./users.js";

const texts = TEXTS.failuresPage;
const said = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const COLUMNS = [
  { id: "at", title: texts.at, sorts: true, of: (row) => html`<${Time} at=${row.failed_at} />` },
  { id: "operation", title: texts.operation, of: (row) => html`<span class="answers"><strong>${texts.operations[row.operation] ?? row.operation}</strong><small class="muted">${row.platform}</small></span>` },
  { id: "identity", title: texts.identity, of: (row) => html`<span class="answers">${row.social_id && html`<span class="clip" title=${row.social_id}>${row.social_id}</span>`}${row.user_id && html`<${UserLink} app=${row.app} user=${row.user_id} />`}</span>` },
  { id: "why", title: texts.why, of: (row) => html`<${Why} row=${row} />` },
  { id: "request", title: texts.request, of: (row) => html`<${Id} value=${row.request_id} />` },
];

function Why({ row }) {
  return html`<details><summary><code>${row.error_type}</code> <small class="muted">${texts.steps(row.steps.length)}</small></summary>
    <ol class="steps">${row.steps.map((step, index) => html`<li key=${index}><strong>${step.step}</strong>
      ${step.seen !== undefined && html` ${texts.seen} <code>${said(step.seen)}</code>`}${step.allowed !== undefined && html`, ${texts.allowed} <code>${said(step.allowed)}</code>`}</li>`)}</ol></details>`;
}

export function FailedLogins({ route, apps, canEdit }) {
  if (!canEdit) return html`<p class="empty">${texts.needsEditor}</p>`;
  const filters = [
    { ...appFilter(apps), all: "default" },
    { id: "platform", title: texts.platform },
    { id: "social_id", title: texts.identity, hint: texts.identityHint },
    { id: "user_id", title: texts.user, hint: texts.userHint },
    { id: "request_id", title: texts.request, hint: texts.requestHint },
  ];
  return html`<div><p class="lead">${texts.lead}</p><${List} label=${TEXTS.operationsPage.tabs.logins} parts=${["operations", "logins"]} route=${route} path="/login_failures" field="login_failures"
    filters=${filters} columns=${COLUMNS} keyOf=${(row) => row.failure_id} empty=${texts.none} /></div>`;
}
