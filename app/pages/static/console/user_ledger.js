// What a person owns, and each change of it.

import { dateOf } from "../shared/times.js";
import { html } from "../vendor/preact.js";
import { ApiError, read, userPath } from "./api.js";
import { List } from "./list.js";
import { Loaded, useLoaded } from "./loading.js";
import { Badge, Crumbs, Time } from "./parts.js";
import { hrefOf } from "./route.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";
import { userHref } from "./users.js";

const texts = TEXTS.ledgerPage;
const userTexts = TEXTS.userPage;
const isSet = (at) => at && !at.startsWith("0001");
const TONES = { grant: "good", restore: "good", refund: "bad", suspend: "waiting" };
const OWNED = [
  { id: "name", title: texts.asset, of: (row) => html`<strong>${row.name}</strong> <small class="muted">${userTexts.types[row.type]}</small>` },
  { id: "quantity", title: texts.quantity, number: true, of: (row) => (row.type === "subscription" ? html`<${Badge} state=${row.valid ? "active" : "ended"} />` : row.quantity) },
  { id: "until", title: texts.until, of: (row) => html`<${Time} at=${isSet(row.ends_at) ? row.ends_at : ""} />` },
];
const columnsOf = (app, user) => [
  { id: "at", title: texts.at, sorts: true, of: (row) => html`<${Time} at=${row.entered_at} />` },
  { id: "entry", title: texts.entry, of: (row) => html`<${Badge} tone=${TONES[row.kind] ?? ""} text=${texts.entries[row.kind] ?? row.kind} />` },
  { id: "asset", title: texts.asset, of: (row) => html`<strong>${row.name}</strong>` },
  { id: "units", title: texts.units, number: true, of: (row) => row.quantity },
  { id: "period", title: texts.period, of: (row) => (isSet(row.ends_at) ? `${isSet(row.starts_at) ? dateOf(row.starts_at) : ""} – ${dateOf(row.ends_at)}` : "") },
  { id: "order", title: texts.order, of: (row) => (row.receipt_id && row.channel !== "operator" ? html`<a href=${hrefOf(["users", app, user, "orders", row.receipt_id])}>${row.bp_product_id || texts.order}</a>` : row.bp_product_id) },
  { id: "reported", title: texts.reported, of: (row) => TEXTS.orderPage.channels[row.channel] ?? row.channel },
  { id: "key", title: texts.key, of: (row) => html`<code class="clip" title=${row.key}>${row.key}</code>` },
];

/** An erased user owns nothing, but the entries are kept. */
const ownedBy = (path) => read(path).catch((error) => {
  if (error instanceof ApiError && error.status === 404) return { assets: [] };
  throw error;
});

export function Ledger({ route, canEdit }) {
  const [app, user] = route.parts;
  const path = `${userPath(app, user)}/assets`;
  const state = useLoaded(() => ownedBy(path), [path]);
  if (!canEdit) return html`<p class="empty">${TEXTS.usersPage.needsEditor}</p>`;
  return html`<${Crumbs} steps=${[[TEXTS.users, hrefOf(["users"], { app })], [`${user.slice(0, 8)}…`, userHref(app, user)], [texts.title]]} />
    <header class="head"><h1>${texts.title}</h1></header>
    <${Loaded} state=${state}>${({ assets }) => assets.length > 0 && html`<h2>${texts.now}</h2>
      <${Table} label=${texts.now} columns=${OWNED} rows=${assets.map((row) => ({ ...row, key: `${row.name} ${row.subscription}` }))} />`}<//>
    <h2>${texts.title}</h2><p class="lead">${texts.lead}</p>
    <${List} label=${texts.title} parts=${["users", app, user, "ledger"]} route=${route} path=${`${path}/entries`} field="entries" columns=${columnsOf(app, user)} keyOf=${(row) => row.entry_id} empty=${texts.none} />`;
}
