// The page to talk to Parley: who uses it, what the app offers, and the parts that are shown.

import { html, render, useEffect, useReducer, useState } from "../vendor/preact.js";
import { Account } from "./account.js";
import { Choices, settled } from "./choices.js";
import { Controls } from "./controls.js";
import { Inside } from "./inside.js";
import { Memory, Store } from "./memory.js";
import { Microphone } from "./microphone.js";
import { Mouth } from "./mouth.js";
import { Player } from "./player.js";
import { Pronounce } from "./pronounce.js";
import { Tabs } from "./tabs.js";
import { Talk } from "./talk.js";
import { Transcript } from "./transcript.js";
import { Alert } from "./words.js";

const DRAW_MS = 30; // events may come by hundreds a second
const RENEWED = "Your session had expired: you are logged in again.";
const FORGETS =
  "This browser lets the page keep nothing: all works, but when you reload or leave the page you begin as somebody new. " +
  "To be known again, allow this site to store data.";

const app = new URLSearchParams(location.search).get("app") ?? undefined;
const kept = new Store(() => localStorage);
const account = new Account(kept, app);
const player = new Player({ onState: () => talk.played() });
const talk = new Talk(account, player, new Memory(new Store(() => sessionStorage), account.app, "talk"), () => redraw());
const chosen = new Memory(kept, account.app, "choices");

const reference = document.querySelector("link[rel=help]"); // the server leaves it out where it serves none

let redraw = () => {};

// what tests of this page read: nothing here may be set
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
    redraw = rarely(draw);
    account.onRenewed = () => setNotice(RENEWED);
    if (!kept.lasts) setNotice(FORGETS);
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
      <p>${offers?.title} ${reference && html`<a href=${reference.href}>Reference of the interface</a>`}</p>
    </header>
    <main class="container">
      ${fault && html`<${Alert} fault=${fault} onRetry=${() => location.reload()} />`}
      <div aria-live="polite">
        ${notice &&
        html`<p class="notice">
          <span>${notice}</span>
          <button type="button" class="secondary" onClick=${() => setNotice("")}>Close this note</button>
        </p>`}
      </div>
      ${tabs ? html`<${Tabs} tabs=${tabs} shown=${shown} onShow=${setShown} />` : !fault && html`<p aria-busy="true">Starting</p>`}
    </main>
  `;
}

function Conversation({ offers, draw }) {
  const choices = settled(chosen.read(), offers);
  talk.choices = choices;
  const onChoose = (choice) => {
    chosen.write({ ...chosen.read(), ...choice });
    draw();
  };
  const { trouble, current } = talk;
  return html`
    <${Choices} offers=${offers} choices=${choices} onChoose=${onChoose} />
    <${Transcript} turns=${talk.turns} />
    ${trouble && html`<${Alert} fault=${trouble.fault} onRetry=${trouble.retry} onClose=${() => talk.dismiss()} />`}
    <div class="controls">
      <div class="state">
        <${Mouth} player=${player} visemes=${current?.shapes ?? []} />
        <p role="status">${talk.status}</p>
        <span class="level" aria-hidden="true"><span style=${{ transform: `scaleX(${talk.ear.level})` }}></span></span>
      </div>
      <${Controls} talk=${talk} choices=${choices} />
    </div>
    <${Inside} run=${current?.run ?? null} />
  `;
}

/** Log in, learn what there is, and show what was said before; then the page can be used. */
async function begin() {
  await account.enter();
  const offers = await account.json("/bp/ai/offers");
  await talk.begin();
  return offers;
}

function rarely(draw) {
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
