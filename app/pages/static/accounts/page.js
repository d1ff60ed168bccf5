// The accounts page: chooses the flow that the address names, and renders the components.

import { html, render, useEffect, useLayoutEffect, useReducer, useState } from "../vendor/preact.js";
import { Bar } from "../shared/bar.js";
import { JsonEntry, Store } from "../talk/storage.js";
import { Accounts } from "./accounts.js";
import { Log } from "./log.js";
import { panelOf } from "./panels.js";
import { entryOf, GROUPS } from "./platforms.js";
import { nextLogin, Provider } from "./provider.js";
import { CurrentUser, listedTitle, providerTitle } from "./user.js";

const DEFAULT_APP = "default";

const app = new URLSearchParams(location.search).get("app");
const entry = new JsonEntry(new Store(() => sessionStorage), app ?? DEFAULT_APP, "accounts");
let redraw = () => {};
const accounts = new Accounts(entry, app, () => redraw());

const chosenId = () => entryOf(location.hash.slice(1)).id;

function App() {
  const [, draw] = useReducer((drawn) => drawn + 1, 0);
  const [problem, setProblem] = useState(undefined);
  const [id, setId] = useState(chosenId());

  // In the same task as the first reading: a choice made before an effect ran would not be noticed.
  useLayoutEffect(() => {
    redraw = draw;
    const onHash = () => {
      accounts.choose();
      setId(chosenId());
    };
    addEventListener("hashchange", onHash);
    accounts.begin().then(setProblem);
    return () => removeEventListener("hashchange", onHash);
  }, []);
  useEffect(() => {
    if (problem !== undefined) document.documentElement.dataset.ready = "";
  }, [problem]);

  return html`
    <${Bar} />
    <main>
      <h1 class="unseen">Accounts</h1>
      ${problem && html`<div class="alert" role="alert"><p><strong>Nobody can sign in at third parties.</strong> ${problem}</p></div>`}
      <div class="columns">
        <${Menu} chosen=${id} />
        <${CurrentUser} accounts=${accounts}><${Settings} chosen=${id} /><//>
        <${Flow} id=${id} ready=${problem !== undefined} />
        <${Log} accounts=${accounts} next=${nextLogin(accounts, id)} />
      </div>
    </main>
  `;
}

/** The list of the ways to log in: links on wide screens, one select on narrow ones. */
function Menu({ chosen }) {
  const go = (event) => (location.hash = event.currentTarget.value);
  const title = (id) => listedTitle(accounts, id);
  return html`
    <nav class="menu" aria-label="What to try">
      ${GROUPS.filter(({ ofUser }) => !ofUser).map(
        (group) => html`<div key=${group.title}>
          <h2>${group.title}</h2>
          <ul aria-label=${group.title}>
            ${group.entries.map(
              ({ id, color }) => html`<li key=${id}>
                <a href=${`#${id}`} aria-current=${id === chosen ? "page" : null}>
                  <${Tile} color=${color} title=${title(id)} />${title(id)}
                </a>
              </li>`,
            )}
          </ul>
        </div>`,
      )}
    </nav>
    <label class="field menu-select">
      <span>What to try</span>
      <select value=${chosen} onChange=${go}>
        ${GROUPS.map(
          (group) => html`<optgroup key=${group.title} label=${group.title}>
            ${group.entries.map(({ id }) => html`<option key=${id} value=${id}>${title(id)}</option>`)}
          </optgroup>`,
        )}
      </select>
    </label>
  `;
}

/** Links to what the current user may change. On narrow screens they are in the select. */
function Settings({ chosen }) {
  const { entries } = GROUPS.find(({ ofUser }) => ofUser);
  return html`<nav class="settings" aria-label="Current user">
    ${entries.map(({ id, title }) => html`<a key=${id} href=${`#${id}`} aria-current=${id === chosen ? "page" : null}>${title}</a>`)}
  </nav>`;
}

const Tile = ({ color, title }) =>
  html`<span class="tile" style=${{ background: color }} aria-hidden="true">${title.slice(0, 1)}</span>`;

function Flow({ id, ready }) {
  const { color } = entryOf(id);
  const title = providerTitle(accounts, id);
  const Panel = panelOf(id);
  return html`<section class="flow" aria-labelledby="flow-title">
    <header>
      <${Tile} color=${color} title=${title} />
      <h2 id="flow-title">${title}</h2>
      <code>${id}</code>
      ${!Panel && html`<span class="tag">sandbox</span>`}
    </header>
    ${Panel ? html`<${Panel} key=${id} accounts=${accounts} />` : ready ? html`<${Provider} accounts=${accounts} platform=${id} />` : html`<p aria-busy="true">Starting</p>`}
  </section>`;
}

render(html`<${App} />`, document.body);
