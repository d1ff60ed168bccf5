// The talk page: sets up the account, loads the offers of the app and renders the components.

import { html, render, useEffect, useReducer, useState } from "../vendor/preact.js";
import { Account } from "./account.js";
import { Choices, effectiveChoices } from "./choices.js";
import { Controls } from "./controls.js";
import { RequestDetails } from "./request_details.js";
import { JsonEntry, Store } from "./storage.js";
import { Microphone } from "./microphone.js";
import { Mouth } from "./mouth.js";
import { Player } from "./player.js";
import { Pronounce } from "./pronounce.js";
import { Tabs } from "./tabs.js";
import { Talk } from "./talk.js";
import { Transcript } from "./transcript.js";
import { Alert } from "./errors.js";

const DRAW_MS = 30; // Hundreds of events may arrive per second.
const RENEWED = "Your session expired. You are logged in again.";
const NOT_STORED =
  "This browser does not let the page store data. Everything works, but after a reload you are a new user. " +
  "To be recognized, allow this site to store data.";

const app = new URLSearchParams(location.search).get("app") ?? undefined;
const storage = new Store(() => localStorage);
const account = new Account(storage, app);
const player = new Player({ onState: () => talk.playerChanged() });
const talk = new Talk(account, player, new JsonEntry(new Store(() => sessionStorage), account.app, "talk"), () => redraw());
const chosen = new JsonEntry(storage, account.app, "choices");

// The server removes the links to what it does not serve.
const reference = document.querySelector("link[rel=help]");
const related = [...document.querySelectorAll("link[rel=related]")];

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

  useEffect(() => {
    redraw = throttled(draw);
    account.onRenewed = () => setNotice(RENEWED);
    if (!storage.isPersistent) setNotice(NOT_STORED);
    begin().then(setOffers, setFault);
  }, []);
  useEffect(() => {
    if (offers) document.documentElement.dataset.ready = "";
  }, [offers]);

  const tabs = offers && [
    { id: "conversation", title: "Conversation", panel: html`<${Conversation} offers=${offers} draw=${draw} />` },
    {
      id: "pronunciation",
      title: "Pronunciation",
      panel: html`<${Pronounce} account=${account} offers=${offers} microphone=${Microphone} />`,
    },
  ];
  return html`
    <header class="container">
      <h1>Talk to Parley</h1>
      <span class="app-title">${offers?.title}</span>
      <p>
        ${reference && html`<a href=${reference.href}>API reference</a>`}
        ${related.map(({ href, title }) => html`<a key=${href} href=${href}>${title}</a>`)}
      </p>
    </header>
    <main class="container">
      ${fault && html`<${Alert} fault=${fault} onRetry=${() => location.reload()} />`}
      <div aria-live="polite">
        ${notice &&
        html`<p class="notice">
          <span>${notice}</span>
          <button type="button" class="secondary outline" onClick=${() => setNotice("")}>Dismiss</button>
        </p>`}
      </div>
      ${tabs ? html`<${Tabs} tabs=${tabs} shown=${shown} onShow=${setShown} />` : !fault && html`<p aria-busy="true">Starting</p>`}
    </main>
  `;
}

function Conversation({ offers, draw }) {
  const choices = effectiveChoices(chosen.read(), offers);
  talk.choices = choices;
  const onChoose = (choice) => {
    chosen.write({ ...chosen.read(), ...choice });
    draw();
  };
  const { lastError, current } = talk;
  return html`
    <div class="conversation">
      <${Choices} offers=${offers} choices=${choices} onChoose=${onChoose} />
      <${Transcript} turns=${talk.turns} />
      ${lastError && html`<${Alert} fault=${lastError.fault} onRetry=${lastError.retry} onClose=${() => talk.dismiss()} />`}
      <div class="controls">
        <div class="state">
          <${Mouth} player=${player} visemes=${current?.shapes ?? []} />
          <p role="status">${talk.status}</p>
          <span class="level" aria-hidden="true"><span style=${{ transform: `scaleX(${talk.recorder.level})` }}></span></span>
        </div>
        <${Controls} talk=${talk} choices=${choices} />
      </div>
    </div>
    <${RequestDetails} run=${current?.run ?? null} />
  `;
}

/** Log in, load the offers and show the history of the conversation. */
async function begin() {
  await account.ensureSession();
  const offers = await account.json("/bp/ai/offers");
  await talk.begin();
  return offers;
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
