// The engagement page: a leaderboard that fills, an image that is drawn, and an email that is opened.

import { Exchanges } from "../accounts/exchanges.js";
import { Log } from "../accounts/log.js";
import { JsonEntry, Store } from "../talk/storage.js";
import { html, render, useEffect, useReducer, useState } from "../vendor/preact.js";
import { Board, BoardPanel } from "./board.js";
import { Email, EmailPanel } from "./email.js";
import { Picture, PicturePanel } from "./picture.js";
import { players } from "./player.js";

const app = new URLSearchParams(location.search).get("app");
const entry = new JsonEntry(new Store(() => sessionStorage), app ?? "default", "engagement");
const reference = document.querySelector("link[rel=help]"); // The server removes it if it serves no reference.
let redraw = () => {};
const exchanges = new Exchanges(app, () => redraw());
const board = new Board(exchanges, () => redraw());
const picture = new Picture(exchanges, () => redraw());
const email = new Email(exchanges, () => redraw());
const log = { exchanges, repeat: ({ name, method, path, body, token }) => exchanges.send({ name, method, path, body, token }) };

/** Log in the users. Return whether that worked. */
async function begin() {
  const all = await players(exchanges, entry);
  if (all.length === 0) return false;
  picture.player = email.player = all[0];
  await board.begin(all);
  return true;
}

function App() {
  const [, draw] = useReducer((drawn) => drawn + 1, 0);
  const [ready, setReady] = useState(undefined);
  useEffect(() => {
    redraw = draw;
    begin().then(setReady);
  }, []);
  useEffect(() => {
    if (ready !== undefined) document.documentElement.dataset.ready = "";
  }, [ready]);
  return html`
    <header class="container">
      <h1>Engagement</h1>
      <p>
        <a href="/">Talk</a>
        <a href="/dev/accounts">Accounts</a>
        <a href="/dev/payments">Payments</a>
        ${reference && html`<a href=${reference.href}>API reference</a>`}
      </p>
    </header>
    <main class="container">
      ${ready === false && html`<div class="alert" role="alert"><p><strong>Nobody could be logged in.</strong> The requests below say why.</p></div>`}
      <div class="panels">
        <${BoardPanel} board=${board} />
        <${PicturePanel} picture=${picture} />
        <${EmailPanel} email=${email} />
      </div>
      <${Log} accounts=${log} />
    </main>
  `;
}

render(html`<${App} />`, document.body);
