// An email of a strategy: queued, sent, and opened.

import { outcome, succeeded } from "../accounts/exchanges.js";
import { html, useState } from "../vendor/preact.js";

const STRATEGY = "welcome";
const POLL_MS = 500;
const WATCHED_MS = 120_000;
const STATUSES = { sending: "Queued", waiting: "Waits for another attempt", sent: "Sent", refused: "Refused", suppressed: "Unsubscribed" };

export class Email {
  #exchanges;
  #onChange;
  #watched = 0; // Which email is watched. A new one ends the watching of the one before it.

  constructor(exchanges, onChange) {
    this.#exchanges = exchanges;
    this.#onChange = onChange;
    this.player = null;
    this.address = "";
    this.row = null; // `{status, opens, machine_opens}`
    this.kept = null; // The email in the inbox.
    this.opened = false;
    this.problem = "";
  }

  async send(name) {
    const id = crypto.getRandomValues(new Uint16Array(2)).join("-");
    Object.assign(this, { address: `reader-${id}@example.com`, row: null, kept: null, opened: false, problem: "" });
    const body = { name: STRATEGY, email_to: this.address, custom_variables: { name } };
    const request = { name: "Send an email", path: "/bp/user/me/mail_hub/send", body, token: this.player.token };
    const exchange = await this.#exchanges.send(request);
    if (!succeeded(exchange)) this.problem = outcome(exchange);
    else this.#watch(++this.#watched);
    this.#onChange();
  }

  open() {
    this.opened = true;
    this.#onChange();
  }

  async #watch(number) {
    const end = performance.now() + WATCHED_MS;
    const name = "Read the opens";
    const path = `/dev/mail/sent?${new URLSearchParams({ uid: this.player.uid, ...(this.#exchanges.app && { app: this.#exchanges.app }) })}`;
    for (let read = null; number === this.#watched && performance.now() < end; ) {
      read = await this.#exchanges.send({ name, method: "GET", path, aside: true, replaces: read });
      if (number !== this.#watched || !succeeded(read)) return;
      this.row = read.answer.mails[0];
      if (this.row.status === "sent" && this.kept === null) await this.#fetch();
      this.#onChange();
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  async #fetch() {
    const path = `/dev/mail?${new URLSearchParams({ to: this.address })}`;
    const response = await fetch(path, { headers: { Accept: "application/json" } }).catch(() => null);
    const [kept] = response?.ok ? await response.json() : [];
    this.kept = kept ?? null;
  }
}

export function EmailPanel({ email }) {
  const [name, setName] = useState("Ada");
  const { kept, opened, player, problem, row } = email;
  return html`<section class="flow" aria-labelledby="email-title">
    <header>
      <h2 id="email-title">Email</h2>
      <code>${STRATEGY}</code>
      <a class="tag" href="/dev/mail">inbox</a>
    </header>
    <form
      class="line"
      onSubmit=${(event) => {
        event.preventDefault();
        email.send(name.trim());
      }}
    >
      <input aria-label="Name" value=${name} maxlength="100" onInput=${(event) => setName(event.currentTarget.value)} />
      <button disabled=${player === null}>Send</button>
    </form>
    ${problem && html`<p class="result result-bad" role="alert">${problem}</p>`}
    ${row &&
    html`<div role="status"><ol class="stages">
      <li class="reached">${STATUSES[row.status]}</li>
      <li class=${row.opens ? "reached" : ""}>${times(row.opens)} by readers</li>
      ${row.machine_opens > 0 && html`<li class="reached">${times(row.machine_opens)} by programs</li>`}
    </ol></div>`}
    ${kept
      ? html`<article class="mail">
          <h3>${kept.subject}</h3>
          <p class="muted">to ${kept.to}</p>
          ${opened
            ? html`<iframe sandbox="" title="The email" srcdoc=${kept.html}></iframe>`
            : html`<button type="button" class="quiet" onClick=${() => email.open()}>Open the email</button>`}
        </article>`
      : !row && html`<p class="empty">The email stays on this machine. Open it, and its tracking pixel reports that.</p>`}
  </section>`;
}

const times = (count) => (count === 1 ? "Opened once" : count === 0 ? "Not opened" : `Opened ${count} times`);
