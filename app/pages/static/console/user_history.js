// The history of a person, the newest first, by day. What can be opened has a link.

import { clockOf } from "../shared/times.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { read, userPath } from "./api.js";
import { Icon } from "./icons.js";
import { Badge } from "./parts.js";
import { go, hrefOf } from "./route.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.history;
const SIZE = 50;
const GROUPS = {
  all: [],
  money: ["order", "subscription", "asset", "withdrawal"],
  sign_in: ["session", "identity", "login_failure"],
  use: ["conversation", "task", "board", "mail"],
  support: ["operator", "account"],
};

export function History({ app, user, route, isAdmin }) {
  const group = route.query.show in GROUPS ? route.query.show : "all";
  const [rows, setRows] = useState(null);
  const [next, setNext] = useState();
  const [error, setError] = useState("");
  const load = async (before, earlier) => {
    try {
      const query = { kinds: GROUPS[group].join(","), size: SIZE, before };
      const page = await read(`${userPath(app, user)}/history`, query);
      setRows([...earlier, ...page.history]);
      setNext(page.next);
    } catch (failure) {
      setError(failure.message);
    }
  };
  useEffect(() => {
    load(undefined, []);
  }, [app, user, group]);
  return html`<section class="history" aria-label=${texts.title}>
    <div class="segmented" role="group" aria-label=${texts.show}>${Object.keys(GROUPS).map((id) => html`<button key=${id} type="button"
      aria-pressed=${String(id === group)} onClick=${() => go(["users", app, user], { show: id === "all" ? undefined : id })}>${texts.groups[id]}</button>`)}</div>
    ${error && html`<p class="error" role="alert">${error}</p>`}
    ${rows && !rows.length && html`<p class="empty">${texts.none}</p>`}
    ${byDay(rows ?? []).map(([day, items]) => html`<section key=${day}><h2 class="day">${day}</h2>
      <ol class="timeline">${items.map((row) => html`<${Happened} key=${`${row.kind} ${row.id} ${row.at}`} ...${{ app, user, row, isAdmin }} />`)}</ol></section>`)}
    ${next && html`<p class="more"><button class="quiet" onClick=${() => load(next, rows)}>${texts.older}</button></p>`}
  </section>`;
}

function byDay(rows) {
  const days = new Map();
  for (const row of rows) {
    const day = new Date(row.at).toLocaleDateString(undefined, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
    days.set(day, [...(days.get(day) ?? []), row]);
  }
  return [...days];
}

/** The address of what a row is about, if there is a page for it. */
function hrefFor(app, user, row, isAdmin) {
  if (row.kind === "order" || row.kind === "subscription") return hrefOf(["users", app, user, "orders", row.id]);
  if (row.kind === "asset" && row.facts.receipt_id && row.facts.channel !== "operator") return hrefOf(["users", app, user, "orders", row.facts.receipt_id]);
  return row.kind === "conversation" && isAdmin ? hrefOf(["users", app, user, "conversations", row.id]) : null;
}

function Happened({ app, user, row, isAdmin }) {
  const href = hrefFor(app, user, row, isAdmin);
  const said = texts.said[row.kind](row.facts, row.id);
  const detail = texts.details[row.kind]?.(row.facts, row.id);
  const state = row.facts.status;
  const nothing = row.facts.granted === false;
  const isFault = row.kind === "login_failure";
  return html`<li class=${isFault ? "fault" : ""}>
    <span class="dot"><${Icon} name=${row.kind} /></span>
    <div class="what"><span>${href ? html`<a href=${href}>${said}</a>` : said}</span>
      ${state && html` <${Badge} state=${state} tone=${nothing ? "waiting" : undefined} />`}
      ${nothing && html`<small>${texts.nothing} <a href=${href}>${texts.why}</a></small>`}
      ${detail && html`<small class="muted">${detail}</small>`}</div>
    <time datetime=${row.at} title=${row.at}>${clockOf(new Date(row.at))}</time>
  </li>`;
}
