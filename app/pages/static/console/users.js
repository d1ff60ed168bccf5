// The users of an app, and the search for one by what support knows.

import { html } from "../vendor/preact.js";
import { appFilter, List, stateFilter } from "./list.js";
import { Badge, Id, Stacked, Time } from "./parts.js";
import { hrefOf } from "./route.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.usersPage;
const STATUSES = ["active", "frozen", "deactivated", "banned"];

export const userHref = (app, user) => hrefOf(["users", app, user]);
/** A user, with the app below. */
export const Who = ({ row }) => html`<${Stacked} below=${row.app}><${UserLink} app=${row.app} user=${row.user_id} /><//>`;
export const UserLink = ({ app, user }) => html`<a href=${userHref(app, user)}><code>${user.slice(0, 8)}…${user.slice(-6)}</code></a>`;

export const addressOf = ({ identities }) => identities[0]?.split(": ")[1];
/** The name of a user, or what the user is known by instead. */
export const nameOf = (row) => row.name || addressOf(row) || (row.status === "deactivated" ? texts.erased : texts.guest);

const COLUMNS = [
  { id: "user", title: texts.user, of: (row) => html`<a class="clip" title=${nameOf(row)} href=${userHref(row.app, row.user_id)}><strong>${nameOf(row)}</strong></a>` },
  { id: "id", title: texts.id, of: (row) => html`<${Id} value=${row.user_id} />` },
  { id: "identities", title: texts.identities, of: (row) => row.identities.length ? html`<span class="clip" title=${row.identities.join("\n")}>${row.identities.join(", ")}</span>` : html`<span class="muted">–</span>` },
  { id: "app", title: TEXTS.list.app, of: (row) => row.app },
  { id: "status", title: texts.status, of: (row) => html`<span class="badges">${(row.status !== "active" || !row.ban) && html`<${Badge} state=${row.status} />`}${row.ban && html`<${Badge} state="banned" />`}</span>` },
  { id: "found", title: texts.foundBy, of: (row) => texts.by[row.found_by] ?? "" },
  { id: "created", title: texts.created, sorts: true, of: (row) => html`<${Time} at=${row.created_at} />` },
];

export function Users({ route, apps, canEdit }) {
  if (!canEdit) return html`<header class="head"><h1>${TEXTS.users}</h1></header><p class="empty">${texts.needsEditor}</p>`;
  const searching = Boolean(route.query.text);
  const filters = [
    { id: "text", title: texts.search, hint: texts.searchHint, search: true },
    { ...appFilter(apps), all: searching ? TEXTS.list.all : "default" },
    ...(searching ? [] : [stateFilter(texts.status, STATUSES)]),
  ];
  const columns = COLUMNS.filter(({ id }) => (searching ? true : id !== "found")).map((column) => (searching ? { ...column, sorts: false } : column));
  return html`<header class="head"><h1>${TEXTS.users}</h1></header>
    <p class="lead">${texts.lead}</p>
    <${List} label=${TEXTS.users} parts=${["users"]} route=${route} path="/users" field="users" filters=${filters}
      columns=${columns} keyOf=${(row) => `${row.app}/${row.user_id}`} empty=${searching ? texts.notFound : undefined} />`;
}
