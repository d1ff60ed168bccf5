// The payments page: choose a product and a way to pay, pay at the sandbox, and see what the user owns then.

import { html, render, useEffect, useReducer, useState } from "../vendor/preact.js";
import { Action, Result } from "../accounts/fields.js";
import { Log } from "../accounts/log.js";
import { Bar } from "../shared/bar.js";
import { JsonEntry, Store } from "../talk/storage.js";
import { Purchases } from "./purchases.js";

const PERIODS = { P1W: "a week", P1M: "a month", P1Y: "a year" };

const query = new URLSearchParams(location.search);
const app = query.get("app");
const entry = new JsonEntry(new Store(() => sessionStorage), app ?? "default", "payments");
let redraw = () => {};
const purchases = new Purchases(entry, app, () => redraw());

function App() {
  const [, draw] = useReducer((drawn) => drawn + 1, 0);
  const [problem, setProblem] = useState(undefined);
  useEffect(() => {
    redraw = draw;
    history.replaceState(null, "", app === null ? location.pathname : `?${new URLSearchParams({ app })}`);
    purchases.begin(query).then(setProblem);
  }, []);
  useEffect(() => {
    if (problem !== undefined) document.documentElement.dataset.ready = "";
  }, [problem]);
  return html`
    <${Bar}>${purchases.cardPage && html`<a href=${purchases.withReturn(purchases.cardPage)}>Card payments</a>`}<//>
    <main>
      <h1 class="unseen">Payments</h1>
      ${problem && html`<div class="alert" role="alert"><p><strong>Nothing can be bought.</strong> ${problem}</p></div>`}
      <div class="columns">
        <${Shop} ready=${problem !== undefined} />
        <${Owned} />
        <${Log} accounts=${purchases} />
      </div>
    </main>
  `;
}

function Shop({ ready }) {
  const { product, products, user, cardPage } = purchases;
  const reason = user === null ? "Nobody is logged in" : "";
  return html`<section class="flow" aria-labelledby="flow-title">
    <header>
      <h2 id="flow-title">Buy</h2>
      <span class="tag">sandbox</span>
    </header>
    ${!ready
      ? html`<p aria-busy="true">Starting</p>`
      : products.length === 0
        ? html`<p>This app has no products: configs of kind <code>products</code>.</p>`
        : html`<form onSubmit=${(event) => event.preventDefault()} aria-label="Buy a product">
            <fieldset class="people products">
              <legend>Product</legend>
              ${products.map((each) => html`<${Product} key=${each.product_id} each=${each} chosen=${each === product} />`)}
            </fieldset>
            <div class="row actions">
              <${Action}
                accounts=${purchases}
                primary
                label="Pay by wallet"
                reason=${reason || (product.by_wallet ? "" : "The product has no walletpay")}
                onAct=${() => purchases.buyByWallet()}
              />
              <${Action}
                accounts=${purchases}
                label="Pay by card"
                reason=${reason || cardReason(product, cardPage)}
                onAct=${() => purchases.buyByCard()}
              />
            </div>
            <p class="muted hint">A page of the sandbox asks for approval, or lets something go wrong. No money moves.</p>
          </form>`}
    <${Result} accounts=${purchases} />
  </section>`;
}

function cardReason({ by_card, type }, cardPage) {
  if (!cardPage) return "The config cardpay/Default does not name the sandbox";
  if (type === "subscription") return "Subscriptions with a card need a setup intent first";
  return by_card ? "" : "The product has no price";
}

function Product({ each: { product_id, title, price, period, type }, chosen }) {
  return html`<label class="person">
    <input type="radio" name="product" value=${product_id} checked=${chosen} onChange=${() => purchases.choose(product_id)} />
    <span><strong>${title}</strong> <small>${product_id}, ${type}</small></span>
    <span class="price"><strong>${price || "price of the platform"}</strong>${period && html` <small>${PERIODS[period] ?? period}</small>`}</span>
  </label>`;
}

/** What the user owned before the last purchase, and owns now. */
function Owned() {
  const { before, assets } = purchases;
  const now = assets ?? [];
  const names = [...new Set([...before, ...now].map(({ name }) => name))];
  return html`<section class="flow owned" aria-labelledby="owned-title">
    <header>
      <h2 id="owned-title">Assets</h2>
      <${Action} accounts=${purchases} label="New user" onAct=${() => purchases.logIn()} />
    </header>
    ${names.length === 0
      ? html`<p class="muted">The user owns nothing yet.</p>`
      : html`<table>
          <thead>
            <tr>
              <th scope="col">Asset</th>
              <th scope="col">Before</th>
              <th scope="col">After</th>
            </tr>
          </thead>
          <tbody>
            ${names.map((name) => {
              const [was, is] = [valueOf(before, name), valueOf(now, name)];
              return html`<tr key=${name}>
                <th scope="row">${name}</th>
                <td>${was}</td>
                <td class=${was === is ? "" : "changed"}>${is}</td>
              </tr>`;
            })}
          </tbody>
        </table>`}
  </section>`;
}

/** Return how much of an asset there is: units, or until when. */
function valueOf(assets, name) {
  const found = assets.find((asset) => asset.name === name);
  if (!found) return "none";
  if (found.type === "subscription") return found.valid_seconds > 0 ? `until ${found.expire_time.slice(0, 10)}` : "ended";
  return found.type === "nonconsumable" ? "owned" : String(found.quantity);
}

render(html`<${App} />`, document.body);
