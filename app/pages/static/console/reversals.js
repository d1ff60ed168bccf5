// The lists of refunds and of disputes.

import { html } from "../vendor/preact.js";
import { amountOf } from "./formats.js";
import { appFilter, List } from "./list.js";
import { Badge, Id, Time } from "./parts.js";
import { hrefOf } from "./route.js";
import { TEXTS } from "./texts.js";
import { Who } from "./users.js";

const texts = TEXTS.moneyPage;
const PLATFORMS = { cardpay: texts.card, walletpay: texts.wallet };
const platformFilter = { id: "platform", title: texts.platform, options: Object.entries(PLATFORMS) };
const shownOf = (row) => html`<strong>${row.amount === undefined ? texts.wholePayment : amountOf(row.amount, row.currency)}</strong>`;
const amount = {
  id: "amount", title: texts.amount, number: true,
  of: (row) => (row.order_id ? html`<a title=${texts.openOrder} href=${hrefOf(["users", row.app, row.user_id, "orders", row.order_id])}>${shownOf(row)}</a>` : shownOf(row)),
};
const PAYMENT = [
  { id: "platform", title: texts.platform, of: (row) => PLATFORMS[row.platform] },
  { id: "payment", title: texts.payment, of: (row) => html`<${Id} value=${row.payment_id} />` },
  { id: "user", title: texts.user, of: (row) => html`<${Who} row=${row} />` },
];
const REFUNDS = [
  amount,
  { id: "state", title: texts.status, of: (row) => html`<${Badge} state=${row.state} text=${texts.refundStates[row.state]} tone=${row.state === "made" ? "good" : row.state === "failed" ? "bad" : "waiting"} />${row.problem && html` <small class="muted">${row.problem}</small>`}` },
  { id: "by", title: texts.by, of: (row) => texts.refundedBy[row.by] },
  ...PAYMENT,
  { id: "at", title: texts.refundedAt, sorts: true, of: (row) => html`<${Time} at=${row.refunded_at} />` },
];
const DISPUTES = [
  amount,
  { id: "state", title: texts.status, of: (row) => html`<${Badge} state=${row.state} text=${texts.disputeStates[row.state]} tone=${row.state === "won" ? "good" : row.state === "lost" ? "bad" : "waiting"} />` },
  { id: "due", title: texts.due, of: (row) => html`<${Time} at=${row.evidence_due_at} />` },
  ...PAYMENT.filter(({ id }) => id !== "payment"),
  { id: "dispute", title: texts.dispute, of: (row) => html`<${Id} value=${row.dispute_id} />` },
  { id: "opened", title: texts.opened, sorts: true, of: (row) => html`<${Time} at=${row.opened_at} />` },
];
const stateOf = (titles) => ({ id: "state", title: texts.status, options: Object.entries(titles) });

export const Refunds = ({ route, apps }) => html`<p class="lead">${texts.refundsLead}</p><${List} label=${texts.tabs.refunds} parts=${["money", "refunds"]} route=${route} path="/payments/refunds" field="refunds"
  columns=${REFUNDS} keyOf=${(row) => `${row.payment_id} ${row.refund_id}`} empty=${texts.noRefunds} filters=${[appFilter(apps), platformFilter, stateOf(texts.refundStates)]} />`;

export const Disputes = ({ route, apps }) => html`<p class="lead">${texts.disputesLead}</p><${List} label=${texts.tabs.disputes} parts=${["money", "disputes"]} route=${route} path="/payments/disputes" field="disputes"
  columns=${DISPUTES} keyOf=${(row) => `${row.payment_id} ${row.dispute_id}`} empty=${texts.noDisputes} filters=${[appFilter(apps), platformFilter, stateOf(texts.disputeStates)]} />`;
