// The talk page: sets up the account, loads the offers of the app and renders the components.

import { html, render, useEffect, useReducer, useState } from "../vendor/preact.js";
import { Inside } from "../inside/panel.js";
import { Account } from "./account.js";
import { effectiveChoices } from "./choices.js";
import { Composer } from "./composer.js";
import { Alert } from "./errors.js";
import { IconButton } from "./icons.js";
import { Microphone } from "./microphone.js";
import { Mouth } from "./mouth.js";
import { Player } from "./player.js";
import { Pronounce } from "../pronounce/pronounce.js";
import { Settings } from "./settings.js";
import { JsonEntry, Store } from "./storage.js";
import { TabList } from "./tabs.js";
import { Talk } from "./talk.js";
import { Transcript } from "./transcript.js";

const DRAW_MS = 30; // Hundreds of events may arrive per second.
const RENEWED = "Your session expired. You are logged in again.";
const NOT_STORED =
  "This browser does not let the page store data. Everything works, but after a reload you are a new user. " +
  "To be recognized, allow this site to store data.";
const WIDE = matchMedia("(min-width: 72rem)"); // The panel has a place beside the conversation.
const TABS = [
  { id: "conversation", title: "Conversation" },
  { id: "pronunciation", title: "Pronunciation" },
];

const app = new URLSearchParams(location.search).get("app") ?? undefined;
const storage = new Store(() => localStorage);
const account = new Account(storage, app);
const player = new Player({ onState: () => talk.playerChanged() });
const talkState = new JsonEntry(new Store(() => sessionStorage), account.app, "talk");
const talk = new Talk(account, player, talkState, () => redraw());
const chosen = new JsonEntry(storage, account.app, "choices");

// The server removes the links to what it does not serve.
const links = [...document.querySelectorAll("link[rel=help], link[rel=related]")].map(({ href, title }) => ({ href, title }));

let redraw = () => {};

// For the tests of this page, read-only.
window.parley = Object.freeze({
  player,
  get run() {
    return talk.current?.run ?? null;
  },
});
addEventListener("pagehide", () => talk.remember());

function App() {
  const [, draw] = useReducer((drawn) => drawn + 1, 0);
  const [offers, setOffers] = useState(null);
  const [fault, setFault] = useState(null);
  const [notice, setNotice] = useState("");
  const [shown, setShown] = useState("conversation");
  const [settings, setSettings] = useState(false);
  const [looked, setLooked] = useState(null); // the turn that "Look inside" shows, if it is not the latest
  const [inside, setInside] = useState(WIDE.matches && chosen.read().inside !== false);

  useEffect(() => {
    redraw = throttled(draw);
    account.onRenewed = () => setNotice(RENEWED);
    if (!storage.isPersistent) setNotice(NOT_STORED);
    begin().then(setOffers, setFault);
  }, []);
  useEffect(() => {
    if (offers) document.documentElement.dataset.ready = "";
  }, [offers]);
  const failure = talk.lastError?.fault;
  useEffect(() => {
    if (failure?.extra?.attempts && WIDE.matches) setInside(true);
  }, [failure]);

  const choose = (choice) => {
    chosen.write({ ...chosen.read(), ...choice });
    draw();
  };
  const showInside = (wanted) => {
    setInside(wanted);
    if (WIDE.matches) choose({ inside: wanted });
  };
  const choices = offers && effectiveChoices(chosen.read(), offers);
  talk.choices = choices;
  const talking = shown === "conversation";
  return html`
    <header class="bar">
      <h1><span class="logo" aria-hidden="true"><i /><i /><i /></span>Talk to Parley</h1>
      <span class="app-title">${offers?.title}</span>
      ${offers && html`<${TabList} tabs=${TABS} shown=${shown} onShow=${setShown} />`}
      <nav aria-label="Pages">${links.map(({ href, title }) => html`<a key=${href} href=${href}>${title}</a>`)}</nav>
      ${offers &&
      talking &&
      html`<div class="tools">
        <${IconButton}
          icon="new"
          label="New conversation"
          enabled=${talk.turns.length > 0}
          onAct=${() => talk.startNew()}
        />
        <${IconButton} icon="settings" label="Settings" onAct=${() => setSettings(true)} />
        <${IconButton}
          icon="inside"
          label="Look inside"
          aria-expanded=${inside ? "true" : "false"}
          aria-controls="inside"
          onAct=${() => showInside(!inside)}
        />
      </div>`}
    </header>
    <main class=${inside && talking ? "with-inside" : ""}>
      <div class="content">
        ${fault && html`<${Alert} fault=${fault} onRetry=${() => location.reload()} />`}
        <div aria-live="polite">
          ${notice &&
          html`<p class="notice">
            <span>${notice}</span>
            <button type="button" class="quiet" onClick=${() => setNotice("")}>Dismiss</button>
          </p>`}
        </div>
        ${!offers && !fault && html`<p class="starting" aria-busy="true">Starting</p>`}
        ${offers &&
        html`
          <div class="conversation" role="tabpanel" id="panel-conversation" aria-labelledby="tab-conversation" hidden=${!talking}>
            <${Transcript} talk=${talk} player=${player} />
            ${talk.lastError &&
            html`<${Alert} fault=${failure} onRetry=${talk.lastError.retry} onClose=${() => talk.dismiss()} />`}
            <${Composer} talk=${talk} player=${player} choices=${choices} />
          </div>
          <div role="tabpanel" id="panel-pronunciation" aria-labelledby="tab-pronunciation" hidden=${talking}>
            <${Pronounce} account=${account} offers=${offers} microphone=${Microphone} />
          </div>
          <${Settings}
            open=${settings}
            offers=${offers}
            choices=${choices}
            links=${links}
            onChoose=${choose}
            onNewUser=${startAsNewUser}
            onClose=${() => setSettings(false)}
          />
        `}
      </div>
      ${offers &&
      talking &&
      inside &&
      html`<${Inside}
        records=${talk.turns.map(({ run }) => run).filter(Boolean)}
        chosen=${looked}
        onChoose=${setLooked}
        onClose=${() => showInside(false)}
        app=${account.app}
        consoleUrl=${links.find(({ title }) => title === "Console")?.href}
      >
        <${Experiments} />
      <//>`}
    </main>
  `;
}

/** What shows how the page and the server work together: the mouth, and a lost connection. */
function Experiments() {
  return html`<section class="experiments">
    <${Mouth} player=${player} visemes=${talk.shapes} />
    <div>
      <button
        type="button"
        class="quiet"
        aria-disabled=${talk.connected ? null : "true"}
        onClick=${() => talk.connected && talk.dropConnection()}
      >
        Disconnect
      </button>
      <small>Drops the connection in the middle of an answer. The page resumes it.</small>
    </div>
  </section>`;
}

/** Log in, load the offers and show the history of the conversation. */
async function begin() {
  await account.ensureSession();
  const offers = await account.json("/bp/ai/offers");
  await talk.begin();
  return offers;
}

async function startAsNewUser() {
  await talk.startNew();
  account.forget();
  location.reload();
}

function throttled(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      draw();
    }, DRAW_MS);
  };
}

render(html`<${App} />`, document.body);
