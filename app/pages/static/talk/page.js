// The talk page: signs the user of this browser in, loads the offers of the app and renders the components.

import { Microphone, Player } from "../client/parley-client.js";
import { Inside } from "../inside/panel.js";
import { Pronounce } from "../pronounce/pronounce.js";
import { Bar, pageHref } from "../shared/bar.js";
import { html, render, useEffect, useReducer, useState } from "../vendor/preact.js";
import { LOCAL_STRATEGY, effectiveChoices } from "./choices.js";
import { Composer } from "./composer.js";
import { Alert } from "./errors.js";
import { Experiments } from "./experiments.js";
import { IconButton } from "./icons.js";
import { Settings } from "./settings.js";
import { JsonEntry, Store } from "./storage.js";
import { TabList } from "./tabs.js";
import { Talk } from "./talk.js";
import { Transcript } from "./transcript.js";
import { Visitor } from "./visitor.js";

const DRAW_MS = 30; // Hundreds of events may arrive per second.
const RENEWED = "Your session expired. You are logged in again.";
const NOT_STORED =
  "This browser does not let the page store data. Everything works, but after a reload you are a new user. " +
  "To be recognized, allow this site to store data.";
const WIDE = matchMedia("(min-width: 68.75rem)"); // The panel opens by itself.
const TABS = [
  { id: "conversation", title: "Conversation" },
  { id: "pronunciation", title: "Pronunciation" },
];

const parameters = new URLSearchParams(location.search);
const storage = new Store(() => localStorage);
const visitor = new Visitor(storage, parameters.get("app") ?? "default");
const microphone = new Microphone();
const player = new Player({ onState: () => talk.playerChanged() });
const saved = new JsonEntry(new Store(() => sessionStorage), visitor.app, "talk");
const talk = new Talk({ visitor, player, microphone, saved, onChange: () => redraw() });
const chosen = new JsonEntry(storage, visitor.app, "choices");

// The server writes the links of the bar, and knows whether there is a console.
const consoleUrl = document.getElementById("bar").content.querySelector('[href="/console"]')?.href;

let redraw = () => {};

// For the tests of this page, read-only.
window.parley = Object.freeze({
  player,
  get details() {
    return talk.current?.details ?? null;
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
  const [inside, setInside] = useState(WIDE.matches && chosen.read().inside !== false);
  const [inspected, setInspected] = useState(null); // the request that was chosen in the panel; null: the latest one

  useEffect(() => {
    redraw = throttled(draw);
    visitor.onRenewed = () => setNotice(RENEWED);
    if (!storage.isPersistent) setNotice(NOT_STORED);
    begin().then(setOffers, setFault);
  }, []);
  useEffect(() => {
    if (!offers) return;
    document.documentElement.dataset.ready = "";
    if (choices.hears) startRememberedMode();
  }, [offers]);
  const failure = talk.lastError?.fault;
  useEffect(() => {
    if (failure?.extra?.attempts && WIDE.matches) showLatest();
  }, [failure]);

  const choose = (choice) => {
    chosen.write({ ...chosen.read(), ...choice });
    draw();
  };
  const showInside = (wanted) => {
    setInside(wanted);
    if (WIDE.matches) choose({ inside: wanted });
  };
  const showLatest = () => {
    setInspected(null);
    setInside(true);
  };
  const inspect = (turn) => {
    setInspected(turn.details.key);
    showInside(true);
  };
  const show = (tab) => {
    if (talk.voice.handsFree) talk.toggleHandsFree(); // What is read aloud is no question.
    setShown(tab);
  };
  const toggleHandsFree = async () => {
    await talk.toggleHandsFree();
    choose({ handsFree: talk.voice.handsFree });
  };
  const choices = offers && effectiveChoices(chosen.read(), offers);
  talk.choices = choices;
  useEffect(() => {
    if (choices && !choices.hears && talk.voice.handsFree) talk.toggleHandsFree();
  }, [choices?.hears]);
  const talking = shown === "conversation";
  const welcome = {
    isLocal: choices?.strategy === LOCAL_STRATEGY,
    connectHref: consoleUrl && `${consoleUrl}#/configs?kind=vendor_accounts`,
    guidesHref: pageHref("Guides"),
  };
  return html`
    <${Bar}>
      ${offers &&
      talking &&
      html`
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
          text="Look inside"
          aria-expanded=${inside ? "true" : "false"}
          aria-controls="inside"
          onAct=${() => showInside(!inside)}
        />
      `}
    <//>
    <main class=${inside && talking ? "with-inside" : ""}>
      <div class="content">
        <h1 class="unseen">Talk to Parley</h1>
        ${offers && html`<div class="page-tabs"><${TabList} tabs=${TABS} shown=${shown} onShow=${show} /></div>`}
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
            <${Transcript} talk=${talk} player=${player} welcome=${welcome} onInside=${inspect} />
            ${talk.lastError &&
            html`<${Alert}
              fault=${failure}
              onRetry=${talk.lastError.retry}
              onInside=${failure.extra?.attempts && !inside && showLatest}
              onClose=${() => talk.dismiss()}
            />`}
            <${Composer} talk=${talk} player=${player} choices=${choices} onHandsFree=${toggleHandsFree} />
          </div>
          <div role="tabpanel" id="panel-pronunciation" aria-labelledby="tab-pronunciation" hidden=${talking}>
            <${Pronounce} client=${visitor.client} offers=${offers} microphone=${microphone} />
          </div>
          <${Settings}
            open=${settings}
            offers=${offers}
            choices=${choices}
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
        records=${talk.turns.map(({ details }) => details).filter(Boolean)}
        chosen=${inspected}
        onChoose=${setInspected}
        onClose=${() => showInside(false)}
        app=${visitor.app}
        consoleUrl=${consoleUrl}
        tools=${(tab) => html`<${Experiments} talk=${talk} player=${player} withMouth=${tab === "overview"} />`}
      />`}
    </main>
  `;
}

/** Sign in, load the offers and show the history of the conversation. */
async function begin() {
  await visitor.begin();
  const offers = await visitor.client.offers();
  await talk.begin();
  return offers;
}

/** Begin hands-free by itself if the address asks for it, or if it was on during the last visit. */
async function startRememberedMode() {
  const wanted = parameters.has("hands-free") || chosen.read().handsFree;
  if (wanted && (await microphoneIsAllowed())) await talk.toggleHandsFree();
}

/** Whether the user has allowed the microphone, so that opening it asks nothing. */
async function microphoneIsAllowed() {
  try {
    return (await navigator.permissions.query({ name: "microphone" })).state === "granted";
  } catch {
    return false; // Not every browser can say.
  }
}

async function startAsNewUser() {
  await talk.startNew();
  visitor.forget();
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
