// The console: reads who is signed in, and shows the sign-in or the area that the address names.

import { Bar } from "../shared/bar.js";
import { html, render, useEffect, useState } from "../vendor/preact.js";
import { read, useCsrf, whenSessionEnds, write } from "./api.js";
import { Icon } from "./icons.js";
import { Loaded, useLoaded } from "./loading.js";
import { AREAS, pageOf } from "./pages.js";
import { hrefOf, useRoute } from "./route.js";
import { hasLink, SignIn } from "./sign_in.js";
import { TEXTS } from "./texts.js";

function Console() {
  const [self, setSelf] = useState(undefined);
  const [ended, setEnded] = useState(false);
  const [error, setError] = useState(null);
  const load = () =>
    read("/self").then(
      (answer) => {
        useCsrf(answer.csrf);
        setError(null);
        setSelf(answer);
      },
      (failure) => (failure.status === 401 ? setSelf(null) : setError(failure)),
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
  if (error) return html`<${Bar} /><div class="card"><main><h1>${TEXTS.title}</h1><${Loaded} state=${{ error, reload: load }} /></main></div>`;
  if (self === undefined) return null;
  if (self === null) return html`<${SignIn} ended=${ended} onDone=${(csrf) => (useCsrf(csrf), load())} />`;
  return html`<${Shell} self=${self} onLeave=${leave} />`;
}

function Shell({ self, onLeave }) {
  const route = useRoute();
  const [open, setOpen] = useState(false);
  const { area } = route;
  const apps = useLoaded(() => read("/configs", { kind: "apps" }), [area]); // Apps are made and deleted in an area.
  const may = { canEdit: self.role !== "viewer", isAdmin: self.role === "admin", apps: (apps.value?.configs ?? []).map((row) => row.app) };
  const Page = pageOf(route) ?? NoPage;
  const key = [area, ...route.parts].join("/");
  useEffect(() => {
    document.title = `${Page === NoPage ? TEXTS.noPage.title : TEXTS[area]} · Console · ${TEXTS.product}`;
    setOpen(false);
    scrollTo(0, 0);
  }, [key]);
  const skip = (event) => {
    event.preventDefault();
    document.getElementById("content").focus();
  };
  return html`<a class="skip" href="#content" onClick=${skip}>${TEXTS.skip}</a>
    <${Bar}>
      <button class="menu quiet small" aria-expanded=${String(open)} aria-controls="areas" onClick=${() => setOpen(!open)}>
        <${Icon} name="menu" />${TEXTS.menu}</button>
    <//>
    <div class="shell">
    <aside class=${`side ${open ? "open" : ""}`} id="areas" aria-label=${TEXTS.menu}>
      <nav aria-label=${TEXTS.areas}>
        ${AREAS.map((id) => html`<a key=${id} href=${`#/${id}`} aria-current=${id === area ? "page" : null}>
          <${Icon} name=${id} />${TEXTS[id]}</a>`)}
      </nav>
      <div class="self">
        <span><strong>${self.actor}</strong><small class="muted">${self.role}</small></span>
        <button class="quiet small" onClick=${onLeave}>${TEXTS.signOut}</button>
      </div>
    </aside>
    <main id="content" tabindex="-1"><div class="page" key=${key}><${Page} route=${route} ...${may} /></div></main>
  </div>`;
}

const NoPage = () => html`<header class="head"><h1>${TEXTS.noPage.title}</h1></header>
  <p class="empty">${TEXTS.noPage.text} <a href=${hrefOf(["overview"])}>${TEXTS.noPage.overview}</a></p>`;

render(html`<${Console} />`, document.body);
