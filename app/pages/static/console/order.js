// One payment or subscription of a person: its outcome, what to do, and all its traces.

import { html, useState } from "../vendor/preact.js";
import { read, userPath } from "./api.js";
import { amountOf } from "./formats.js";
import { Loaded, useLoaded } from "./loading.js";
import { Badge, Crumbs, Facts, Id, Note, Time } from "./parts.js";
import { Refund } from "./refund.js";
import { hrefOf } from "./route.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";
import { userHref } from "./users.js";

const texts = TEXTS.orderPage;
const TONES = { granted: "good", used: "good", ended: "good", refunded: "waiting", not_approved: "waiting", not_captured: "waiting", needs_customer: "waiting",
  processing: "waiting", under_review: "waiting", not_paid: "waiting", not_created: "waiting", canceled: "waiting" };
const ENTRIES = [
  { id: "at", title: texts.at, of: (row) => html`<${Time} at=${row.entered_at} />` },
  { id: "kind", title: texts.entry, of: (row) => html`<${Badge} state=${row.kind} />` },
  { id: "name", title: texts.asset, of: (row) => row.name },
  { id: "quantity", title: texts.quantity, number: true, of: (row) => row.quantity },
  { id: "channel", title: texts.reportedBy, of: (row) => texts.channels[row.channel] ?? row.channel },
  { id: "key", title: texts.event, of: (row) => html`<code>${row.key}</code>` },
];
const WEBHOOKS = [
  { id: "at", title: texts.at, of: (row) => html`<${Time} at=${row.received_at} />` },
  { id: "event", title: texts.event, of: (row) => html`<span class="answers"><a href=${hrefOf(["money", "webhooks", row.webhook_id])}>${row.event_type || texts.noType}</a><${Id} value=${row.event_id ?? row.webhook_id} /></span>` },
  { id: "status", title: texts.status, of: (row) => html`<${Badge} state=${row.status} />` },
  { id: "error", title: texts.error, of: (row) => row.error ?? "" },
];

export function Order({ route, canEdit }) {
  const [app, user, , order] = route.parts;
  const path = `${userPath(app, user)}/orders/${encodeURIComponent(order)}`;
  const [done, setDone] = useState("");
  const state = useLoaded(() => read(path), [path]);
  const refunded = (text) => {
    setDone(text);
    state.reload();
  };
  return html`<${Loaded} state=${state}>${(trace) => html`<${Trace} ...${{ app, user, trace, done, canEdit, refunded }} />`}<//>`;
}

function Trace({ app, user, trace, done, canEdit, refunded }) {
  const { order, verdict } = trace;
  // The platform waits for a card before the first attempt, and again after one that was declined.
  const state = verdict === "declined" && order.status === "requires_payment_method" ? verdict : order.status;
  const verdictTexts = texts.verdicts[verdict];
  return html`
    <${Crumbs} steps=${[[TEXTS.users, hrefOf(["users"], { app })], [`${user.slice(0, 8)}…`, userHref(app, user)], [order.amount === undefined ? texts.subscription : texts.order]]} />
    <header class="head"><h1>${order.product ?? texts.noProduct}</h1><${Badge} state=${state} />
      ${order.amount !== undefined && html`<strong class="amount">${amountOf(order.amount, order.currency)}</strong>`}
      ${canEdit && html`<div class="actions"><${Refund} order=${order} onDone=${refunded} /></div>`}</header>
    ${done && html`<p class="good" role="status">${done}</p>`}
    <${Note} tone=${TONES[verdict] ?? "bad"} title=${verdictTexts.title}>${verdictTexts.todo}<//>
    <div class="panel"><${Facts} rows=${[
      [texts.created, html`<${Time} at=${order.created_at} />`],
      [texts.platform, `${order.platform} (${order.config})`],
      [texts.platformId, html`<${Id} value=${order.platform_id} short=${false} />`],
      [texts.ownId, html`<${Id} value=${order.row_id} />`],
      [texts.ends, order.ends_at && html`<${Time} at=${order.ends_at} />`],
    ]} /></div>
    <h2>${texts.entries}</h2>
    <${Table} label=${texts.entries} columns=${ENTRIES} rows=${trace.entries.map((row) => ({ ...row, rowKey: row.entry_id }))} empty=${texts.noEntries} />
    <h2>${texts.webhooks}</h2>
    <${Table} label=${texts.webhooks} columns=${WEBHOOKS} rows=${trace.webhooks.map((row) => ({ ...row, key: row.webhook_id }))} empty=${texts.noWebhooks} />
    ${trace.mismatches.map((each) => html`<${Note} key=${each.mismatch_id} tone="bad" title=${TEXTS.mismatches[each.kind]?.title ?? each.kind}>
      ${each.detail} ${TEXTS.mismatches[each.kind]?.todo}<//>`)}`;
}
