// The purchases of one user: what is sent to the server, and what the user owns before and after.

import { Exchanges, SERVER_TOKEN, succeeded } from "../accounts/exchanges.js";

const KEPT = 12;
const SUB = "/bp/asset/walletpay_sub";
const ORDER = "/bp/asset/walletpay";
const CHECKS_MS = [0, 400, 800, 1600, 3200]; // A subscription may be active only later.

/** Keeps its state in `entry`, a `JsonEntry`, because the browser leaves the page. Calls `onChange` after each change. */
export class Purchases {
  #entry;
  #onChange;

  constructor(entry, app, onChange) {
    this.#entry = entry;
    this.#onChange = onChange;
    const kept = entry.read();
    this.app = app;
    this.exchanges = new Exchanges(app, onChange);
    this.exchanges.restore(kept.exchanges ?? []);
    this.user = kept.user ?? null; // `{uid, token}`
    this.chosen = kept.chosen ?? null;
    this.pending = kept.pending ?? null; // `{kind, id}` of a purchase whose payer is on a page of the sandbox.
    this.before = kept.before ?? [];
    this.assets = [];
    this.products = [];
    this.cardPage = "";
    this.result = null;
    this.conflict = null;
  }

  get busy() {
    return this.result?.status === null;
  }

  get product() {
    return this.products.find(({ product_id }) => product_id === this.chosen) ?? this.products[0];
  }

  choose(product_id) {
    this.chosen = product_id;
    this.#keep();
    this.#onChange();
  }

  /** Load what is sold and what the user owns, and finish a purchase whose payer has come back. */
  async begin(query) {
    const search = this.app === null ? "" : `?${new URLSearchParams({ app: this.app })}`;
    const response = await fetch(`/dev/payments/products${search}`).catch(() => null);
    const body = await response?.json().catch(() => null);
    if (!response?.ok) return body?.error?.message ?? "the server cannot be reached";
    Object.assign(this, { products: body.products, cardPage: body.card_page_url });
    await this.#readAssets();
    if (this.user === null || this.assets === null) await this.logIn();
    if (this.pending !== null) await this.#finish(query);
    this.#onChange();
    return null;
  }

  /** Send a request for the person at the page. */
  async act(request) {
    const sending = this.exchanges.send({ token: this.user?.token, ...request });
    this.result = this.exchanges.list[0];
    this.#onChange();
    const exchange = await sending;
    this.#keep();
    this.#onChange();
    return exchange;
  }

  /** Send an earlier request again, with the same body. */
  async repeat({ name, method, path, body, token, serverToken }) {
    await (serverToken ? this.#asServer({ name, method, path, body }) : this.act({ name, method, path, body, token }));
    await this.#readAssets();
  }

  async buyByWallet() {
    const { product_id, type } = this.product;
    const isSub = type === "subscription";
    const path = isSub ? SUB : `${ORDER}/create`;
    const exchange = await this.act({ name: isSub ? "Subscribe" : "Create an order", path, body: { product_id } });
    if (!succeeded(exchange)) return;
    const made = exchange.answer.walletpay_sub ?? exchange.answer.walletpay_order;
    this.#leave({ kind: isSub ? "subscription" : "order", id: made.id }, made.approve_link_href);
  }

  async buyByCard() {
    const { product_id, amount, currency } = this.product;
    const path = this.#paymentPath();
    const exchange = await this.#asServer({ name: "Create a payment", path, body: { amonut: amount, currency, product_id } });
    if (!succeeded(exchange)) return;
    const { id } = exchange.answer.cardpay_payment_intent;
    this.#leave({ kind: "payment", id }, `${this.cardPage}/${id}`);
  }

  /** Call the server as the app's own server does, which alone may create payments with a card. */
  async #asServer(request) {
    const body = { app: this.app ?? "default" };
    const made = await this.act({ name: "Make a server token", path: SERVER_TOKEN, body, token: null });
    return succeeded(made) ? this.act({ token: null, serverToken: made.answer.token, ...request }) : made;
  }

  #paymentPath = (id = "") => `/bp/server/user/${this.user.uid}/asset/cardpay_payment_intent${id && `/${id}`}`;

  /** Go to a page of the sandbox, which returns to this page. */
  #leave(pending, url) {
    Object.assign(this, { pending, before: this.assets });
    this.#keep();
    location.assign(this.withReturn(url));
  }

  /** Return the URL of a page of the sandbox, from which one gets back to this page. */
  withReturn(url) {
    const back = new URL(location.href);
    if (this.app === null) back.search = "";
    else back.search = new URLSearchParams({ app: this.app });
    const page = new URL(url);
    page.searchParams.set("back", back.href);
    return page.href;
  }

  async #finish(query) {
    const { kind, id } = this.pending;
    this.pending = null;
    if (kind === "payment") {
      await this.#asServer({ name: "Read the payment", method: "GET", path: this.#paymentPath(id), done: paid });
    }
    if (kind === "subscription") await this.#readSubscription(id);
    if (kind === "order" && query.has("PayerID")) {
      await this.act({ name: "Capture the order", path: `${ORDER}/capture`, body: { order_id: id }, done: captured });
    } else if (kind === "order") {
      await this.act({ name: "Read the order", method: "GET", path: `${ORDER}/sync/${id}`, done: captured });
    }
    await this.#readAssets();
  }

  async #readSubscription(id) {
    for (const wait of CHECKS_MS) {
      await new Promise((resolve) => setTimeout(resolve, wait));
      const exchange = await this.act({ name: "Read the subscription", method: "GET", path: `${SUB}/${id}/sync`, done: subscribed });
      if (!succeeded(exchange) || exchange.answer.assets.length > 0) return;
    }
  }

  /** Log in a new user. */
  async logIn() {
    const bytes = crypto.getRandomValues(new Uint32Array(2));
    const body = { device: { id: `payer-${bytes.join("-")}` } };
    const exchange = await this.act({ name: "Log in", path: "/bp/user/login", body, token: null, done: () => "Ready" });
    if (!succeeded(exchange)) return;
    const { uid, session } = exchange.answer.user;
    Object.assign(this, { user: { uid, token: session.session_token }, result: null, before: [] });
    await this.#readAssets();
  }

  /** Read what the user owns. `null`: there is no user any more. */
  async #readAssets() {
    if (this.user === null) return;
    const request = { name: "List the assets", method: "GET", path: "/bp/asset", token: this.user.token, aside: true };
    const exchange = await this.exchanges.send(request);
    this.assets = succeeded(exchange) ? exchange.answer.assets : null;
    this.#keep();
    this.#onChange();
  }

  #keep() {
    const { user, chosen, pending, before } = this;
    this.#entry.write({ user, chosen, pending, before, exchanges: this.exchanges.list.slice(0, KEPT) });
  }
}

const paid = ({ cardpay_payment_intent: { status } }) =>
  status === "succeeded" ? "Paid by card" : `Not paid yet: ${status.replaceAll("_", " ")}`;
const captured = ({ walletpay_order: { status } }) =>
  status === "COMPLETED" ? "Paid by wallet" : `Not paid: the order is ${status}`;
const subscribed = ({ walletpay_sub: { status } }) =>
  status === "ACTIVE" ? "Subscribed by wallet" : `Not subscribed: the subscription is ${status}`;
