// One person: the account, what it owns, what operators can do, and its history.

import { html, useState } from "../vendor/preact.js";
import { Action } from "./action.js";
import { read, userPath } from "./api.js";
import { Export } from "./user_export.js";
import { History } from "./user_history.js";
import { Loaded, useLoaded } from "./loading.js";
import { Badge, Crumbs, Facts, Id, Note, Time } from "./parts.js";
import { hrefOf } from "./route.js";
import { TEXTS } from "./texts.js";
import { addressOf, nameOf } from "./users.js";

const texts = TEXTS.userPage;
const idOf = ({ user_id: id }) => id.slice(-6);

export function User({ route, canEdit, isAdmin }) {
  const [app, user] = route.parts;
  const [changes, setChanges] = useState(0);
  const [done, setDone] = useState("");
  const state = useLoaded(() => read(userPath(app, user)), [app, user, changes]);
  /** `text` may be a function of the answer. */
  const changed = (text) => (answer) => {
    setDone(typeof text === "function" ? text(answer) : text);
    setChanges(changes + 1);
  };
  return html`<${Loaded} state=${state}>${(account) => html`
    <${Crumbs} steps=${[[TEXTS.users, hrefOf(["users"], { app })], [nameOf(account)]]} />
    <header class="head"><h1>${nameOf(account)}</h1>${(account.status !== "active" || !account.ban) && html`<${Badge} state=${account.status} />`}
      ${account.ban && html`<${Badge} state="banned" />`}
      <${Actions} key=${account.user_id} account=${account} canEdit=${canEdit} isAdmin=${isAdmin} changed=${changed} /></header>
    ${done && html`<p class="good" role="status">${done}</p>`}
    ${account.status === "frozen" && html`<${Note} tone="waiting">${texts.closes} <${Time} at=${account.closes_at} /><//>`}
    ${account.status === "deactivated" && html`<${Note} tone="waiting">${TEXTS.receiptPage.erased} <a href=${hrefOf(["users", app, user, "receipt"])}>${TEXTS.receiptPage.open}</a><//>`}
    ${account.ban && html`<${Note} tone="waiting">${texts.isBanned} ${account.ban.until ? html`${texts.until} <${Time} at=${account.ban.until} />.` : texts.forever}${account.ban.reason && html`<br />${texts.banReason(account.ban.reason)}`}<//>`}
    <div class="person">
      <aside>
        <section class="panel"><h2>${texts.account}</h2><${Facts} rows=${[
          [TEXTS.list.app, account.app],
          [TEXTS.usersPage.identities, account.identities.length > 0 && html`<ul class="plain">${account.identities.map((identity) => html`<li key=${identity}>${identity}</li>`)}</ul>`],
          [texts.id, html`<${Id} value=${account.user_id} />`],
          [texts.cuid, account.cuid && html`<${Id} value=${account.cuid} />`],
          [texts.created, html`<${Time} at=${account.created_at} />`],
          [texts.sessions, account.sessions],
          [texts.restriction, account.restriction],
        ]} /><p><a href=${hrefOf(["streams"], { app, user_id: user })}>${TEXTS.streamsPage.runningOf}</a><br />
          <a href=${hrefOf(["streams", "ended"], { app, user_id: user })}>${TEXTS.streamsPage.endedOf}</a></p></section>
        <${Assets} account=${account} changed=${changed} />
      </aside>
      <${History} key=${changes} app=${app} user=${user} route=${route} isAdmin=${isAdmin} />
    </div>`}<//>`;
}

function Assets({ account, changed }) {
  const path = `${userPath(account.app, account.user_id)}/assets`;
  return html`<section class="panel"><h2>${texts.assets}</h2>
    ${account.assets.length ? html`<ul class="plain">${account.assets.map((asset) => html`<li key=${`${asset.name} ${asset.subscription}`} class="asset">
        <div><strong>${asset.name}</strong> <small class="muted">${texts.types[asset.type]}</small></div>
        <div>${asset.type === "subscription" ? html`<${Badge} state=${asset.valid ? "active" : "ended"} />` : html`<strong>${asset.quantity}</strong>`}</div>
        <small class="muted">${asset.type === "subscription" ? html`${texts.until} <${Time} at=${asset.ends_at} />` : `${texts.from} ${texts.origins[asset.origin] ?? asset.origin}`}</small>
        ${account.status !== "deactivated" && asset.type !== "nonconsumable" && html`<${Adjust} asset=${asset} path=${path} changed=${changed} />`}
      </li>`)}</ul>` : html`<p class="muted">${texts.noAssets}</p>`}
    <p><a href=${hrefOf(["users", account.app, account.user_id, "ledger"])}>${TEXTS.ledgerPage.title}</a></p>
  </section>`;
}

function Adjust({ asset, path, changed }) {
  const isPeriod = asset.type === "subscription";
  const run = async ({ values, send }) => {
    const change = values.ends_at ? { ends_at: new Date(values.ends_at).toISOString() } : { quantity: Number(values.quantity) };
    const { changed: units } = await send("PATCH", path, { name: asset.name, ...(isPeriod && { subscription: asset.subscription }), ...change });
    return { units, asked: change.quantity ?? 0 };
  };
  const fields = [
    { id: "quantity", title: texts.adjustBy, type: "number", help: texts.adjustHelp },
    ...(isPeriod ? [{ id: "ends_at", title: texts.adjustEnd, type: "datetime-local" }] : []),
  ];
  return html`<div><${Action} title=${texts.adjust} text=${texts.adjustText(asset.name)} fields=${fields} reason onRun=${run} onDone=${changed(texts.adjusted)} /></div>`;
}

function Actions({ account, canEdit, isAdmin, changed }) {
  const products = useLoaded(() => read("/configs", { app: account.app, kind: "products" }), [account.app]);
  const [isErasing, setErasing] = useState(false);
  const path = userPath(account.app, account.user_id);
  const run = (name) => ({ send }) => send("POST", `${path}/${name}`, {});
  const unban = html`<${Action} title=${texts.unban} text=${texts.unbanText} reason onRun=${run("unban")} onDone=${changed(texts.unbanned)} />`;
  if (!canEdit) return null;
  if (account.status === "deactivated") return account.ban ? html`<div class="actions">${unban}</div>` : null;
  const ban = ({ reason, values, send }) => send("POST", `${path}/ban`, { reason, ...(values.until && { until: new Date(values.until).toISOString() }) });
  const grant = ({ values, send }) => send("POST", `${path}/assets`, { product: values.product });
  const erase = async (asked) => {
    setErasing(true);
    try {
      return await run("erase")(asked);
    } catch (error) {
      setErasing(false);
      throw error;
    }
  };
  const grants = (products.value?.configs ?? []).map(({ name }) => [name, name]);
  const names = [addressOf(account), idOf(account)].filter(Boolean);
  const headingOf = (action) => texts.actionOn(action, account.name || addressOf(account) || texts.userWith(idOf(account)));
  const isFrozen = account.status === "frozen";
  return html`<div class="actions">
    <${Action} title=${texts.grant} text=${texts.grantText} disabled=${!grants.length} fields=${[{ id: "product", title: texts.product, options: grants, required: true, value: grants[0]?.[0] }]}
      reason onRun=${grant} onDone=${changed(texts.granted)} />
    <${Action} title=${texts.endSessions} text=${texts.endSessionsText(account.sessions)} reason onRun=${run("end_sessions")} onDone=${changed(texts.ended)} />
    ${isFrozen
      ? html`<${Action} title=${texts.recover} text=${texts.recoverText} reason onRun=${run("recover")} onDone=${changed(texts.recovered)} />`
      : html`<${Action} title=${texts.freeze} heading=${headingOf(texts.freeze)} text=${texts.freezeText} disabled=${Boolean(account.restriction)} reason danger names=${names} onRun=${run("freeze")} onDone=${changed(texts.frozen)} />`}
    ${account.ban
      ? unban
      : html`<${Action} title=${texts.ban} heading=${headingOf(texts.ban)} text=${texts.banText(account.sessions)} reason danger names=${names}
          fields=${[{ id: "until", title: texts.banUntil, type: "datetime-local", help: texts.banUntilHelp }]} onRun=${ban} onDone=${changed(texts.banned)} />`}
    <${Export} path=${path} found=${account.export} isAdmin=${isAdmin} isErasing=${isErasing} />
    ${isAdmin && html`<${Action} title=${texts.erase} heading=${headingOf(texts.erase)} text=${texts.eraseText} disabled=${Boolean(account.restriction)} reason danger names=${names} onRun=${erase} onDone=${changed(texts.erased)} />`}
  </div>`;
}
