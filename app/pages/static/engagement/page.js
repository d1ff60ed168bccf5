// The engagement page: a leaderboard that fills, an image that is drawn, and an email that is opened.

import { Exchanges } from "../accounts/exchanges.js";
import { Log } from "../accounts/log.js";
import { Bar } from "../shared/bar.js";
import { JsonEntry, Store } from "../talk/storage.js";
import { html, render, useEffect, useReducer, useState } from "../vendor/preact.js";
import { Board, BoardPanel } from "./board.js";
import { Email, EmailPanel } from "./email.js";
import { Picture, PicturePanel } from "./picture.js";
import { players } from "./player.js";

const app = new URLSearchParams(location.search).get("app");
const entry = new JsonEntry(new Store(() => sessionStorage), app ?? "default", "engagement");
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
    <${Bar} />
    <main>
      <h1 class="unseen">Engagement</h1>
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
