// The console: reads who is signed in, and shows the sign-in or the area that the address names.

import { html, render, useEffect, useState } from "../vendor/preact.js";
import { read, useCsrf, whenSessionEnds, write } from "./api.js";
import { Config } from "./config.js";
import { Configs } from "./configs.js";
import { Conversation } from "./conversation.js";
import { Engagement } from "./engagement.js";
import { Icon } from "./icons.js";
import { Jobs } from "./jobs.js";
import { useLoaded } from "./loading.js";
import { Money } from "./money.js";
import { Operations } from "./operations.js";
import { Order } from "./order.js";
import { Overview } from "./overview.js";
import { useRoute } from "./route.js";
import { hasLink, SignIn } from "./sign_in.js";
import { Stream } from "./stream.js";
import { Streams } from "./streams.js";
import { TEXTS } from "./texts.js";
import { User } from "./user.js";
import { Ledger } from "./user_ledger.js";
import { Receipt } from "./user_receipt.js";
import { Users } from "./users.js";

const AREAS = { overview: Overview, users: Users, configs: Configs, streams: Streams, money: Money, engagement: Engagement, jobs: Jobs, operations: Operations };

/** Returns the page that an address names. */
function pageOf({ area, parts }) {
  if (area === "configs" && parts.length === 3) return Config;
  if (area === "streams" && parts.length === 2) return Stream;
  if (area === "users" && parts.length === 2) return User;
  if (area === "users" && parts[2] === "orders") return Order;
  if (area === "users" && parts[2] === "conversations") return Conversation;
  if (area === "users" && parts[2] === "ledger") return Ledger;
  if (area === "users" && parts[2] === "receipt") return Receipt;
  return AREAS[area];
}

function Console() {
  const [self, setSelf] = useState(undefined);
  const [ended, setEnded] = useState(false);
  const load = () =>
    read("/self").then(
      (answer) => {
        useCsrf(answer.csrf);
        setSelf(answer);
      },
      () => setSelf(null),
    );
  useEffect(() => {
    whenSessionEnds(() => (setEnded(true), setSelf(null)));
    if (hasLink()) setSelf(null);
    else load();
  }, []);
  const leave = async () => {
    await write("DELETE", "/session").catch(() => {});
    useCsrf(undefined);
    setEnded(false);
    setSelf(null);
  };
  if (self === undefined) return null;
  if (self === null) return html`<${SignIn} ended=${ended} onDone=${(csrf) => (useCsrf(csrf), load())} />`;
  return html`<${Shell} self=${self} onLeave=${leave} />`;
}

function Shell({ self, onLeave }) {
  const route = useRoute();
  const [open, setOpen] = useState(false);
  const area = route.area in AREAS ? route.area : "overview";
  const apps = useLoaded(() => read("/configs", { kind: "apps" }), [area]); // Apps are made and deleted in an area.
  const may = { canEdit: self.role !== "viewer", isAdmin: self.role === "admin", apps: (apps.value?.configs ?? []).map((row) => row.app) };
  const Page = pageOf({ ...route, area });
  const key = [area, ...route.parts].join("/");
  useEffect(() => {
    document.title = `${TEXTS[area]} – ${TEXTS.product}`;
    setOpen(false);
    scrollTo(0, 0);
  }, [key]);
  const skip = (event) => {
    event.preventDefault();
    document.getElementById("content").focus();
  };
  return html`<div class="shell">
    <a class="skip" href="#content" onClick=${skip}>${TEXTS.skip}</a>
    <header class=${`side ${open ? "open" : ""}`}>
      <p class="brand"><span aria-hidden="true">P</span>${TEXTS.product}</p>
      <button class="menu quiet small" aria-expanded=${String(open)} aria-controls="areas" onClick=${() => setOpen(!open)}>
        <${Icon} name="menu" />${TEXTS.menu}</button>
      <div class="drawer" id="areas">
        <nav aria-label=${TEXTS.areas}>
          ${Object.keys(AREAS).map((id) => html`<a key=${id} href=${`#/${id}`} aria-current=${id === area ? "page" : null}>
            <${Icon} name=${id} />${TEXTS[id]}</a>`)}
        </nav>
        <div class="self">
          <span><strong>${self.actor}</strong><small class="muted">${self.role}</small></span>
          <button class="quiet small" onClick=${onLeave}>${TEXTS.signOut}</button>
        </div>
      </div>
    </header>
    <main id="content" tabindex="-1"><div class="page" key=${key}><${Page} route=${route} ...${may} /></div></main>
  </div>`;
}

render(html`<${Console} />`, document.body);
