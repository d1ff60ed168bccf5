// The console: reads who is signed in, and shows the sign-in or the area that the address names.

import { html, render, useEffect, useState } from "../vendor/preact.js";
import { read, useCsrf, whenSessionEnds, write } from "./api.js";
import { Config } from "./config.js";
import { Configs } from "./configs.js";
import { Jobs } from "./jobs.js";
import { Money } from "./money.js";
import { useRoute } from "./route.js";
import { SignIn } from "./sign_in.js";
import { Streams } from "./streams.js";
import { TEXTS } from "./texts.js";

const AREAS = { configs: Configs, streams: Streams, jobs: Jobs, money: Money };

function Console() {
  const [self, setSelf] = useState(undefined);
  const load = () =>
    read("/self").then(
      (answer) => {
        useCsrf(answer.csrf);
        setSelf(answer);
      },
      () => setSelf(null),
    );
  useEffect(() => {
    whenSessionEnds(() => setSelf(null));
    if (location.hash.startsWith("#link=")) setSelf(null);
    else load();
  }, []);
  const leave = async () => {
    await write("DELETE", "/session").catch(() => {});
    useCsrf(undefined);
    setSelf(null);
  };
  if (self === undefined) return null;
  if (self === null) return html`<${SignIn} onDone=${(csrf) => (useCsrf(csrf), load())} />`;
  return html`<${Shell} self=${self} onLeave=${leave} />`;
}

function Shell({ self, onLeave }) {
  const route = useRoute();
  const area = route.area in AREAS ? route.area : "configs";
  const canEdit = self.role !== "viewer";
  const opensConfig = area === "configs" && route.parts.length === 3;
  const Area = opensConfig ? Config : AREAS[area];
  useEffect(() => {
    document.title = `${TEXTS[area]} – ${TEXTS.product}`;
  }, [area]);
  const skip = (event) => {
    event.preventDefault();
    document.getElementById("content").focus();
  };
  return html`<div class="shell">
    <a class="skip" href="#content" onClick=${skip}>${TEXTS.skip}</a>
    <header class="side">
      <p class="brand"><span aria-hidden="true">P</span>${TEXTS.product}</p>
      <nav aria-label=${TEXTS.areas}>
        ${Object.keys(AREAS).map((id) => html`<a key=${id} href=${`#/${id}`} aria-current=${id === area ? "page" : null}>${TEXTS[id]}</a>`)}
      </nav>
      <div class="self">
        <span><strong>${self.actor}</strong><small class="muted">${self.role}</small></span>
        <button class="quiet small" onClick=${onLeave}>${TEXTS.signOut}</button>
      </div>
    </header>
    <main id="content" tabindex="-1"><${Area} key=${opensConfig ? route.parts.join("/") : area} route=${route} canEdit=${canEdit} /></main>
  </div>`;
}

render(html`<${Console} />`, document.body);
