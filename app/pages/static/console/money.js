// Money: payments, subscriptions, withdrawals, what does not agree, what platforms have reported, and the ledger.

import { html, useState } from "../vendor/preact.js";
import { Action } from "./action.js";
import { read } from "./api.js";
import { amountOf } from "./formats.js";
import { appFilter, List, stateFilter } from "./list.js";
import { Badge, Id, Note, Said, Stacked, Tabs, Time } from "./parts.js";
import { Refund } from "./refund.js";
import { Disputes, Refunds } from "./reversals.js";
import { hrefOf } from "./route.js";
import { Sales } from "./sales.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";
import { UserLink, Who } from "./users.js";
import { Webhook, WebhookList } from "./webhooks.js";

const texts = TEXTS.moneyPage;
const orderHref = (row) => hrefOf(["users", row.app, row.user_id, "orders", row.row_id]);
const PLATFORMS = [["cardpay", texts.card], ["walletpay", texts.wallet]];
const ORDERS = [
  { id: "product", title: texts.product, of: (row) => html`<span class="answers"><a href=${orderHref(row)}><strong>${row.product ?? texts.noProduct}</strong></a><small class="muted under">${Object.fromEntries(PLATFORMS)[row.platform]} <${Id} value=${row.platform_id} /></small></span>` },
  { id: "amount", title: texts.amount, number: true, of: (row) => amountOf(row.amount, row.currency) },
  { id: "status", title: texts.status, of: (row) => html`<${Badge} state=${row.status} />` },
  { id: "user", title: texts.user, of: (row) => html`<${Who} row=${row} />` },
  { id: "created", title: texts.created, sorts: true, of: (row) => html`<${Time} at=${row.created_at} />` },
];
const SUBSCRIPTIONS = ORDERS.map((column) => (column.id === "amount" ? { id: "ends", title: texts.ends, of: (row) => html`<${Time} at=${row.ends_at} />` } : column));
const WITHDRAWALS = [
  { id: "amount", title: texts.amount, number: true, of: (row) => html`<${Stacked} below=${texts.payouts[row.platform] ?? row.platform}><strong>${amountOf(row.amount, row.currency)}</strong><//>` },
  { id: "state", title: texts.status, of: (row) => html`<${Stacked} below=${texts.reasons[row.reason] ?? row.reason}><${Badge} state=${row.state} /><//>` },
  { id: "id", title: texts.withdrawId, of: (row) => html`<span class="answers"><${Id} value=${row.withdraw_id} /><small class="muted under">${texts.batchId} <${Id} value=${row.withdrawal_id} /></small></span>` },
  { id: "user", title: texts.user, of: (row) => html`<${Who} row=${row} />` },
  { id: "created", title: texts.created, sorts: true, of: (row) => html`<${Time} at=${row.created_at} />` },
];
const MISMATCHES = [
  { id: "kind", title: texts.kind, of: (row) => html`<span class="why"><strong>${TEXTS.mismatches[row.kind]?.title ?? row.kind}</strong><small class="muted">${TEXTS.mismatches[row.kind]?.todo}</small></span>` },
  { id: "detail", title: texts.detail, of: (row) => html`<span class="answers"><${Said} text=${row.detail} /><${Id} value=${row.subject} /></span>` },
  { id: "found", title: texts.found, sorts: true, of: (row) => html`<${Stacked} below=${[texts.payouts[row.platform] ?? row.platform, row.app].filter(Boolean).join(" · ")}><${Time} at=${row.found_at} /><//>` },
  { id: "state", title: texts.state, of: (row) => html`<${Settled} row=${row} />` },
];

/** How a mismatch was settled, if it was. */
function Settled({ row }) {
  if (row.resolved_at) return html`<span class="why"><${Badge} tone="good" text=${texts.resolved} /><small class="muted">${row.resolution} (${texts.resolvedBy(row.resolved_by)})</small></span>`;
  return html`<${Badge} tone=${row.resolved ? "good" : "waiting"} text=${row.resolved ? texts.repaired : texts.openOnly} />`;
}
const platformFilter = { id: "platform", title: texts.platform, options: PLATFORMS };

const LISTS = {
  orders: Payments,
  subscriptions: ({ route, apps }) => html`<${List} label=${texts.tabs.subscriptions} parts=${["money", "subscriptions"]} route=${route} path="/payments/subscriptions" field="orders" columns=${SUBSCRIPTIONS}
    keyOf=${(row) => row.row_id} empty=${texts.empty.subscriptions} filters=${[appFilter(apps), platformFilter, stateFilter(texts.status, ["ACTIVE", "SUSPENDED", "CANCELLED", "EXPIRED", "trialing", "past_due", "canceled", "incomplete"])]} />`,
  sales: Sales,
  refunds: Refunds,
  disputes: Disputes,
  withdrawals: Withdrawals,
  mismatches: Mismatches,
  webhooks: WebhookList,
  ledger: Ledger,
};

export function Money({ route, apps, canEdit }) {
  const tab = route.parts[0] in LISTS ? route.parts[0] : "orders";
  if (tab === "webhooks" && route.parts[1]) return html`<${Webhook} id=${route.parts[1]} canEdit=${canEdit} />`;
  const Shown = LISTS[tab];
  return html`<div><header class="head"><h1>${TEXTS.money}</h1></header>
    <${Tabs} label=${TEXTS.money} current=${tab} tabs=${Object.keys(LISTS).map((id) => [id, texts.tabs[id], hrefOf(["money", id])])} />
    <${Shown} key=${tab} route=${route} apps=${apps} canEdit=${canEdit} /></div>`;
}

const ORDER_STATES = ["CREATED", "APPROVED", "COMPLETED", "VOIDED", "succeeded", "requires_payment_method", "requires_action", "canceled", "abandoned"];

function Payments({ route, apps, canEdit }) {
  const [done, setDone] = useState({ count: 0 });
  const refund = { id: "actions", title: "", of: (row) => canEdit && html`<${Refund} order=${row} onDone=${(text) => setDone({ text, count: done.count + 1 })} />` };
  return html`${done.text && html`<p class="good" role="status">${done.text}</p>`}
    <${List} key=${done.count} label=${texts.tabs.orders} parts=${["money", "orders"]} route=${route} path="/payments/orders" field="orders" columns=${[...ORDERS, refund]} keyOf=${(row) => row.row_id} empty=${texts.empty.orders}
      filters=${[appFilter(apps), platformFilter, stateFilter(texts.status, ORDER_STATES)]} />`;
}

function Withdrawals({ route, apps, canEdit }) {
  const [changes, setChanges] = useState(0);
  const settle = (row) => ({ values, send }) => send("POST", `/withdrawals/${encodeURIComponent(row.app)}/${row.withdrawal_id}/settle`, { outcome: values.outcome });
  const action = { id: "actions", title: "", of: (row) => canEdit && row.state === "unknown" && html`<${Action} title=${texts.settle} text=${texts.settleText} reason danger name=${row.withdraw_id}
    fields=${[{ id: "outcome", title: texts.outcome, required: true, value: "paid", options: [["paid", texts.wasPaid], ["failed", texts.wasNotPaid]] }]} onRun=${settle(row)} onDone=${() => setChanges(changes + 1)} />` };
  return html`<${List} key=${changes} label=${texts.tabs.withdrawals} parts=${["money", "withdrawals"]} route=${route} path="/withdrawals" field="withdrawals" columns=${[...WITHDRAWALS, action]}
    keyOf=${(row) => row.withdrawal_id} empty=${texts.empty.withdrawals} filters=${[appFilter(apps), stateFilter(texts.status, ["in_progress", "unknown", "paid", "failed"], "state")]} />`;
}

function Mismatches({ route, apps, canEdit }) {
  const [changes, setChanges] = useState(0);
  const resolve = (row) => ({ send }) => send("POST", `/payments/mismatches/${row.mismatch_id}/resolve`);
  const action = { id: "actions", title: "", of: (row) => !row.resolved && html`<${Action} title=${texts.resolve} text=${texts.resolveText} reason onRun=${resolve(row)} onDone=${() => setChanges(changes + 1)} />` };
  return html`<div><p class="lead">${texts.mismatchLead}</p>
    <${List} key=${changes} label=${texts.tabs.mismatches} parts=${["money", "mismatches"]} route=${route} path="/payments/mismatches" field="mismatches" columns=${canEdit ? [...MISMATCHES, action] : MISMATCHES}
      keyOf=${(row) => row.mismatch_id} empty=${texts.noMismatches} filters=${[
        appFilter(apps),
        { id: "resolved", title: texts.state, options: [["false", texts.openOnly], ["true", texts.resolvedOnly]] },
        { id: "kind", title: texts.kind, options: Object.entries(TEXTS.mismatches).map(([id, { title }]) => [id, title]) },
      ]} /></div>`;
}

const DIFFERENCES = [
  { id: "user", title: texts.user, of: (row) => html`<${UserLink} app=${row.app} user=${row.user_id} />` },
  { id: "subject", title: texts.subject, of: (row) => row.subject },
  { id: "problem", title: texts.detail, of: (row) => row.problem },
];

function Ledger() {
  const [state, setState] = useState({});
  const check = async () => {
    setState({ running: true });
    setState(await read("/ledger/check").then((value) => ({ value }), (error) => ({ error })));
  };
  return html`<div><p class="lead">${texts.ledgerLead}</p>
    <p><button disabled=${state.running} aria-busy=${state.running ? "true" : null} onClick=${check}>${state.running ? texts.checking : texts.check}</button></p>
    ${state.error && html`<p class="error" role="alert">${state.error.message}</p>`}
    ${state.value && html`<div role="status"><${Note} tone=${state.value.differences.length ? "bad" : state.value.complete ? "good" : "waiting"}
        title=${state.value.differences.length ? texts.differs(state.value.differences.length) : state.value.complete ? texts.agrees : texts.soFar}>${state.value.complete ? "" : texts.incomplete}<//>
      ${state.value.differences.length > 0 && html`<${Table} label=${texts.tabs.ledger} columns=${DIFFERENCES} rows=${state.value.differences.map((row, index) => ({ ...row, key: index }))} />`}</div>`}</div>`;
}
