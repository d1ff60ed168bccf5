// What was deleted with the account of a person, and what is kept.

import { html } from "../vendor/preact.js";
import { read, userPath } from "./api.js";
import { Loaded, useLoaded } from "./loading.js";
import { Badge, Crumbs, Facts, Id, Time } from "./parts.js";
import { hrefOf } from "./route.js";
import { download, Table } from "./table.js";
import { TEXTS } from "./texts.js";
import { userHref } from "./users.js";

const texts = TEXTS.receiptPage;
const plain = (name) => name.replaceAll("_", " ");
const TONES = { revoked: "good", failed: "bad", pending: "waiting" };
const DELETED = [
  { id: "what", title: texts.what, of: (row) => plain(row.key) },
  { id: "count", title: texts.count, number: true, of: (row) => row.count },
];
const KEPT = [
  { id: "what", title: texts.what, of: (row) => plain(row.key) },
  { id: "content", title: texts.content, of: (row) => row.content },
  { id: "rows", title: texts.rows, number: true, of: (row) => row.rows ?? "–" },
];
const PLATFORMS = [
  { id: "platform", title: texts.platform, of: (row) => row.platform },
  { id: "token", title: texts.token, of: (row) => html`<${Badge} tone=${TONES[row.token] ?? ""} text=${texts.tokens[row.token] ?? row.token} />` },
  { id: "settled", title: texts.settled, of: (row) => html`<${Time} at=${row.settled_at} />` },
];
const NOT_SEARCHED = [{ id: "what", title: texts.where, of: (row) => plain(row.key) }, { id: "content", title: texts.content, of: (row) => row.text }];
const keyed = (object, of) => Object.entries(object).map(([key, value]) => ({ key, ...of(value) }));

export function Receipt({ route, canEdit }) {
  const [app, user] = route.parts;
  const state = useLoaded(() => read(`${userPath(app, user)}/erasure_receipt`), [app, user]);
  if (!canEdit) return html`<p class="empty">${TEXTS.usersPage.needsEditor}</p>`;
  return html`<${Crumbs} steps=${[[TEXTS.users, hrefOf(["users"], { app })], [`${user.slice(0, 8)}…`, userHref(app, user)], [texts.title]]} />
    <${Loaded} state=${state}>${(found) => html`<${Shown} ...${found} />`}<//>`;
}

function Shown({ receipt, signed }) {
  const deleted = keyed(receipt.deleted, (count) => ({ count }));
  const none = deleted.filter(({ count }) => !count).map(({ key }) => plain(key)).join(", ");
  return html`<header class="head"><h1>${texts.title}</h1><${Badge} tone=${receipt.complete ? "good" : "waiting"} text=${receipt.complete ? texts.complete : texts.incomplete} />
      <div class="actions"><button class="quiet small" onClick=${() => download(`receipt-${receipt.user_id}.jws`, "application/jose", signed)}>${texts.download}</button></div></header>
    <p class="lead">${texts.lead}</p>
    <div class="panel"><${Facts} rows=${[
      [TEXTS.userPage.id, html`<${Id} value=${receipt.user_id} />`],
      [texts.cause, texts.causes[receipt.cause] ?? receipt.cause],
      [texts.deactivated, html`<${Time} at=${receipt.deactivated_at} />`],
      [texts.erasedAt, receipt.erased_at && html`<${Time} at=${receipt.erased_at} />`],
    ]} /></div>
    <h2>${texts.deleted}</h2><${Table} label=${texts.deleted} columns=${DELETED} rows=${deleted.filter(({ count }) => count)} empty=${texts.nothing} />
    ${none && html`<details class="more-of"><summary>${texts.nothingOf}</summary><p class="muted">${texts.none(none)}</p></details>`}
    <h2>${texts.kept}</h2><${Table} label=${texts.kept} columns=${KEPT} rows=${keyed(receipt.kept, (value) => value)} empty=${texts.nothing} />
    ${receipt.platforms.length > 0 && html`<h2>${texts.platforms}</h2><${Table} label=${texts.platforms} columns=${PLATFORMS} rows=${receipt.platforms.map((row, key) => ({ ...row, key }))} />`}
    <h2>${texts.notSearched}</h2><${Table} label=${texts.notSearched} columns=${NOT_SEARCHED} rows=${keyed(receipt.not_searched, (text) => ({ text }))} empty=${texts.nothing} />`;
}
