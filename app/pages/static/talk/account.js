// Who uses this page: a device that logs in by itself and is kept in local storage, and its calls to the server.

const SESSION_HEADER = "X-Service-Session-Token";
const DEFAULT_APP = "default";

/** An answer that says no: the error envelope, with the status and how long to wait before asking again. */
export class Refused extends Error {
  constructor({ status, errorType, message, extra = {}, retryAfterS = null }) {
    super(message);
    Object.assign(this, { status, errorType, extra, retryAfterS });
  }

  static async of(response) {
    const body = await response.json().catch(() => ({}));
    const error = body.error ?? {};
    const waits = response.headers.get("Retry-After");
    return new Refused({
      status: response.status,
      errorType: error.error_type ?? "internal",
      message: error.message ?? `the server answered ${response.status}`,
      extra: error.extra,
      retryAfterS: waits === null ? null : Number(waits),
    });
  }
}

/** The session had expired, and another one was begun; what was asked was not, since it cannot be sent twice. */
export class Renewed extends Error {}

/** No answer at all. */
export class Unreachable extends Error {}

export class Account {
  #store;
  #entering = null;

  /** `store` keeps the session and the device. `onRenewed` is told when a session had expired and another one was begun. */
  constructor(store, app = DEFAULT_APP, { onRenewed = () => {} } = {}) {
    this.#store = store;
    this.app = app;
    this.onRenewed = onRenewed;
    this.token = store.getItem(this.#key("session"));
  }

  /** Log in, unless a session is known already. */
  async enter() {
    if (!this.token) await this.#login();
  }

  headers(more = {}) {
    const named = this.app === DEFAULT_APP ? {} : { "X-Service-App-Id": this.app };
    return { ...named, ...(this.token ? { [SESSION_HEADER]: this.token } : {}), ...more };
  }

  /**
   * Call the server; an answer over 299 is thrown as `Refused`, and none as `Unreachable`.
   *
   * Where the session has expired, one is begun for the same device and the call is made again, once. A `body`
   * that is a stream cannot be sent twice: then `Renewed` is thrown after the login.
   */
  async call(path, { method = "GET", query = {}, headers = {}, body, signal, ...options } = {}) {
    const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
    const url = given.length ? `${path}?${new URLSearchParams(given)}` : path;
    const ask = () =>
      reached(fetch(url, { method, headers: this.headers(headers), body, signal, cache: "no-store", ...options }));
    const used = this.token;
    let response = await ask();
    if (response.ok) return response;
    const refused = await Refused.of(response);
    if (refused.errorType !== "account.invalid_session") throw refused;
    await this.#renew(used);
    if (body instanceof ReadableStream) throw new Renewed("the session had expired", { cause: refused });
    response = await ask();
    if (response.ok) return response;
    throw await Refused.of(response);
  }

  /** The same for an answer in JSON. */
  async json(path, options) {
    return (await this.call(path, options)).json();
  }

  async #renew(used) {
    if (this.token !== used) return; // another call has done it meanwhile
    this.#entering ??= this.#login().finally(() => (this.#entering = null));
    await this.#entering;
    this.onRenewed();
  }

  async #login() {
    this.token = null;
    const response = await reached(
      fetch("/bp/user/login", {
        method: "POST",
        headers: this.headers({ "Content-Type": "application/json" }),
        body: JSON.stringify({ device: { id: this.#device() } }),
      }),
    );
    if (!response.ok) throw await Refused.of(response);
    const { user } = await response.json();
    this.token = user.session.session_token;
    this.#store.setItem(this.#key("session"), this.token);
  }

  #device() {
    let id = this.#store.getItem(this.#key("device"));
    if (!id) {
      const bytes = crypto.getRandomValues(new Uint8Array(16)); // randomUUID is there on secure addresses alone
      id = `browser-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
      this.#store.setItem(this.#key("device"), id);
    }
    return id;
  }

  #key(what) {
    return `parley.${this.app}.${what}`;
  }
}

async function reached(response) {
  try {
    return await response;
  } catch (error) {
    throw error.name === "AbortError" ? error : new Unreachable("no answer", { cause: error });
  }
}
