// The user of this browser: a device id in its storage, which signs in by itself.

import { ParleyClient } from "../client/parley-client.js";
import { JsonEntry } from "./storage.js";

const BEGIN_MS = 6_000; // Somebody who waits for an answer would rather be told that the server is busy.

export class Visitor {
  app;
  client;
  /** Called after an expired session was renewed. */
  onRenewed = () => {};
  /** Called with the URL and the options of `fetch` before each request. */
  onRequest = () => {};
  #session;
  #device;

  constructor(store, app) {
    this.app = app;
    this.#session = new JsonEntry(store, app, "session");
    this.#device = new JsonEntry(store, app, "device");
    this.client = new ParleyClient(location.origin, app, {
      store: { load: () => this.#storedSession(), save: (session) => this.#session.write(session ?? {}) },
      backoff: { beginMs: BEGIN_MS },
      onSessionExpired: () => this.#renew(),
      fetch: (url, options) => {
        this.onRequest(url, options);
        return fetch(url, options);
      },
    });
  }

  /** Sign in, unless there is a session already. */
  async begin() {
    if ((await this.client.session()) === null) await this.#signIn();
  }

  /** Forget the user of this browser. The next visit makes a new one. */
  forget() {
    this.#session.write({});
    this.#device.write({});
  }

  #storedSession() {
    const session = this.#session.read();
    return session.token ? session : null;
  }

  async #renew() {
    await this.#signIn();
    this.onRenewed();
  }

  #signIn() {
    let { id } = this.#device.read();
    if (!id) {
      const bytes = crypto.getRandomValues(new Uint8Array(16)); // randomUUID exists only in secure contexts.
      id = `browser-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
      this.#device.write({ id });
    }
    return this.client.signIn("device", { id });
  }
}
