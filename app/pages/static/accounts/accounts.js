// The state of the page: the current user, the fields of its forms, and the calls of the flows.

import { Exchanges, succeeded } from "./exchanges.js";

const PROFILE_DELAYS_MS = [200, 400, 800, 1600, 3200]; // A job of the server fetches the profile.
const SOCIAL = "/bp/user/me/socialaccount";

/** Keeps its state in `entry`, a `JsonEntry`, and calls `onChange` after each change. */
export class Accounts {
  #entry;
  #onChange;

  constructor(entry, app, onChange) {
    this.#entry = entry;
    this.#onChange = onChange;
    const { token = null, values = {} } = entry.read();
    this.exchanges = new Exchanges(app, onChange);
    this.query = app === null ? "" : `?${new URLSearchParams({ app })}`;
    this.token = token;
    this.user = null;
    this.values = { ...initialValues(), ...values };
    this.people = [];
    this.platforms = {};
    this.conflict = null; // The `bp_auth` of the last bind that was refused, and the name of its error.
    this.result = null; // The last exchange that the person at the page has caused.
    this.sentAt = 0; // When a request was last sent that may cause a mail or a message.
  }

  get busy() {
    return this.result?.status === null;
  }

  /** Load what the sandbox emulates, and the user of an earlier visit. Return null, or why the sandbox is unusable. */
  async begin() {
    if (this.token) await this.readUser();
    const response = await fetch(`/dev/accounts/platforms${this.query}`).catch(() => null);
    const body = await response?.json().catch(() => null);
    if (!response?.ok) return body?.error?.message ?? "the server cannot be reached";
    Object.assign(this, body);
    return null;
  }

  set(name, value) {
    this.values[name] = value;
    this.#keep();
    this.#onChange();
  }

  /** Send a request for the person at the page. */
  async act(request) {
    if (this.busy) return this.result;
    this.conflict = null;
    this.sentAt = Date.now();
    const sending = this.exchanges.send(request);
    this.result = this.exchanges.list[0];
    this.#onChange();
    const exchange = await sending;
    this.#learn(exchange);
    return exchange;
  }

  /** Send an earlier request again, with the same body. */
  async repeat({ name, method, path, body, token, proof, done }) {
    await this.act({ name, method, path, body, token, proof, done });
  }

  /** Forget the result of the last request, because another flow was chosen. */
  choose() {
    if (!this.busy) Object.assign(this, { result: null, conflict: null });
  }

  /** Send a request with the session of the current user, and read the user after it. */
  async actAsUser(request) {
    const exchange = await this.act({ token: this.token, ...request });
    if (succeeded(exchange)) await this.readUser();
    return exchange;
  }

  async logIn(body, { name = "Log in", path = "/bp/user/login", ...more } = {}) {
    const done = ({ user }) => `Logged in as a ${user.is_new_user ? "new" : "known"} user (${user.uid})`;
    const exchange = await this.act({ name, path, body, done, ...more });
    if (succeeded(exchange)) await this.#enter(exchange.answer);
  }

  async bind(body, more = {}) {
    const done = ({ social_account: { platform, id } }) => `Bound ${platform} ${id}`;
    const exchange = await this.act({ name: "Bind", path: SOCIAL, body, token: this.token, done, ...more });
    if (succeeded(exchange)) await this.#readProfile(exchange.answer.social_account.platform);
  }

  async unbind({ platform, id }) {
    const path = `${SOCIAL}/${platform}/${encodeURIComponent(id)}`;
    await this.actAsUser({ name: "Unbind", method: "DELETE", path, done: () => `Unbound ${platform} ${id}` });
  }

  async renew(id, body, more) {
    const path = `${SOCIAL}/social_network_a/${encodeURIComponent(id)}`;
    await this.actAsUser({ name: "Renew the token", method: "PUT", path, body, ...more, done: () => "Token renewed" });
  }

  async logOut() {
    await this.act({ name: "Log out", path: "/bp/user/logout", token: this.token, done: () => "Logged out" });
    this.#forget();
  }

  /** Read the user. The exchange replaces an earlier one of the same kind. */
  async readUser({ aside = true, replaces } = {}) {
    const { token } = this;
    const done = () => "User refreshed";
    const request = { name: "Read the user", method: "GET", path: "/bp/user/me", token, aside, replaces, done };
    const exchange = await (aside ? this.exchanges.send(request) : this.act(request));
    if (token !== this.token) return exchange;
    if (succeeded(exchange)) this.user = exchange.answer.user;
    else if (exchange.answer?.error?.error_type === "account.invalid_session") this.#forget();
    this.#onChange();
    return exchange;
  }

  /** Let the chosen person sign in at a platform. Return the body of a login and how it was made, or null. */
  async prove(platform, choice, title) {
    const path = `/dev/accounts/${platform}/_issue${this.query}`;
    const name = `Sign in with ${title}`;
    const exchange = await this.act({ name, path, body: choice, done: () => `${title} has issued a proof` });
    return succeeded(exchange) ? { body: exchange.answer, more: { proof: { path, body: choice } } } : null;
  }

  async #enter({ user }) {
    this.token = user.session.session_token;
    if (this.user?.uid !== user.uid) this.user = user; // Otherwise its profiles are known.
    this.#keep();
    const [newest] = user.social_accounts.slice(-1);
    if (newest) await this.#readProfile(newest.platform);
    else await this.readUser();
  }

  /** Read the user until the profile of a platform was fetched, for as long as that usually takes. */
  async #readProfile(platform) {
    const { token } = this;
    let exchange = await this.readUser();
    for (const delay of PROFILE_DELAYS_MS) {
      const account = this.user?.social_accounts.find((one) => one.platform === platform);
      if (token !== this.token || !account || account.social_profile) return;
      await new Promise((resolve) => setTimeout(resolve, delay));
      if (token !== this.token) return;
      exchange = await this.readUser({ replaces: exchange });
    }
  }

  #learn(exchange) {
    const { answer, name } = exchange;
    const token = answer?.bp_auth?.bp_auth_token;
    if (!token) return;
    this.set("bp_auth_token", token);
    if (!succeeded(exchange)) this.conflict = { token, name, type: answer.error.error_type };
  }

  #forget() {
    Object.assign(this, { token: null, user: null, conflict: null });
    this.#keep();
    this.#onChange();
  }

  #keep() {
    // A fault that was chosen earlier would surprise whoever comes back to the page.
    this.#entry.write({ token: this.token, values: { ...this.values, fault: "" } });
  }
}

function initialValues() {
  const number = Math.floor(1_000 + Math.random() * 9_000);
  return {
    person: null,
    fault: "",
    subject: newSubject(),
    person_name: "Kim Park",
    person_email: "kim@example.test",
    person_verified: true,
    person_picture: "",
    device_id: `device-${number}`,
    local_uid: `local-${number}`,
    player_id: `player-${number}`,
    name: `ada${number}`,
    email: `ada${number}@example.com`,
    phone_number: `+491511234${number}`,
    password: "correct horse battery",
    new_password: "staple gun at dawn",
  };
}

/** Return the id of a new person, which has a form that all platforms use. */
export const newSubject = () => `2${Array.from({ length: 17 }, () => Math.floor(Math.random() * 10)).join("")}`;
