// The account of this browser: a device id in local storage that logs in automatically, and its calls to the server.

const SESSION_HEADER = "X-Service-Session-Token";
const DEFAULT_APP = "default";

/** An error response: the error envelope, the status, and the seconds to wait before a retry. */
export class ErrorResponse extends Error {
  constructor({ status, errorType, message, extra = {}, retryAfterS = null }) {
    super(message);
    Object.assign(this, { status, errorType, extra, retryAfterS });
  }

  static async of(response) {
    const body = await response.json().catch(() => ({}));
    const error = body.error ?? {};
    const retryAfter = response.headers.get("Retry-After");
    return new ErrorResponse({
      status: response.status,
      errorType: error.error_type ?? "internal",
      message: error.message ?? `the server returned status ${response.status}`,
      extra: error.extra,
      retryAfterS: retryAfter === null ? null : Number(retryAfter),
    });
  }
}

/** The session had expired and was renewed. The request was not repeated, because its body cannot be sent twice. */
export class SessionRenewed extends Error {}

/** The server could not be reached. */
export class Unreachable extends Error {}

export class Account {
  #store;
  #pendingLogin = null;

  /** `store` holds the session and the device id. `onRenewed` is called after an expired session was renewed. */
  constructor(store, app = DEFAULT_APP, { onRenewed = () => {} } = {}) {
    this.#store = store;
    this.app = app;
    this.onRenewed = onRenewed;
    this.token = store.getItem(this.#key("session"));
  }

  /** Log in, unless there is a session already. */
  async ensureSession() {
    if (!this.token) await this.#login();
  }

  /** Forget the user of this browser. The next login makes a new one. */
  forget() {
    for (const name of ["session", "device"]) this.#store.setItem(this.#key(name), "");
    this.token = null;
  }

  headers(more = {}) {
    const appHeader = this.app === DEFAULT_APP ? {} : { "X-Service-App-Id": this.app };
    return { ...appHeader, ...(this.token ? { [SESSION_HEADER]: this.token } : {}), ...more };
  }

  /**
   * Call the server. Throws `ErrorResponse` for an error response and `Unreachable` if there is no response.
   *
   * If the session has expired, the same device logs in again and the call is repeated once. A `body` that is a
   * stream cannot be sent twice; in that case `SessionRenewed` is thrown after the login.
   */
  async call(path, { method = "GET", query = {}, headers = {}, body, signal, ...options } = {}) {
    const parameters = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
    const url = parameters.length ? `${path}?${new URLSearchParams(parameters)}` : path;
    const send = () =>
      convertNetworkErrors(
        fetch(url, { method, headers: this.headers(headers), body, signal, cache: "no-store", ...options }),
      );
    const usedToken = this.token;
    let response = await send();
    if (response.ok) return response;
    const refused = await ErrorResponse.of(response);
    if (refused.errorType !== "account.invalid_session") throw refused;
    await this.#renew(usedToken);
    if (body instanceof ReadableStream) throw new SessionRenewed("the session had expired", { cause: refused });
    response = await send();
    if (response.ok) return response;
    throw await ErrorResponse.of(response);
  }

  /** Call the server and return the JSON of the response. */
  async json(path, options) {
    return (await this.call(path, options)).json();
  }

  async #renew(usedToken) {
    if (this.token !== usedToken) return; // Another call has renewed it meanwhile.
    this.#pendingLogin ??= this.#login().finally(() => (this.#pendingLogin = null));
    await this.#pendingLogin;
    this.onRenewed();
  }

  async #login() {
    this.token = null;
    const response = await convertNetworkErrors(
      fetch("/bp/user/login", {
        method: "POST",
        headers: this.headers({ "Content-Type": "application/json" }),
        body: JSON.stringify({ device: { id: this.#device() } }),
      }),
    );
    if (!response.ok) throw await ErrorResponse.of(response);
    const { user } = await response.json();
    this.token = user.session.session_token;
    this.#store.setItem(this.#key("session"), this.token);
  }

  #device() {
    let id = this.#store.getItem(this.#key("device"));
    if (!id) {
      const bytes = crypto.getRandomValues(new Uint8Array(16)); // randomUUID exists only in secure contexts.
      id = `browser-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
      this.#store.setItem(this.#key("device"), id);
    }
    return id;
  }

  #key(name) {
    return `parley.${this.app}.${name}`;
  }
}

async function convertNetworkErrors(response) {
  try {
    return await response;
  } catch (error) {
    throw error.name === "AbortError" ? error : new Unreachable("no response", { cause: error });
  }
}
