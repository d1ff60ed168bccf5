// The emails and text messages that the sandbox has received, with their codes and links.

import { clockOf } from "../shared/times.js";
import { html, useEffect, useState } from "../vendor/preact.js";

const POLL_MS = 700;
const WATCHED_MS = 60_000; // after a request that may cause a mail
const CODE = /\b\d{6}\b/;
const LINK = /https?:\/\/[^\s<>"']+/g;
const SHOWN = 4;
const PAGES = [
  [/\/email\/verify\?/, "Verify the address"],
  [/\/account\/reset\?/, "Choose a new password"],
  [/\/account\/not-me\?/, "This was not me"],
];

/** The emails to an address. `code` is the field into which the code of an email is written. */
export function Emails({ accounts, to, code }) {
  const found = useNewest(accounts, to, async (path) => {
    const response = await fetch(`/dev/mail?${path}`, { headers: { Accept: "application/json" } });
    return response.ok ? response.json() : [];
  });
  return html`<${Inbox} accounts=${accounts} title=${`Emails to ${to}`} found=${found} code=${code} />`;
}

/** The text messages to a phone number. */
export function Messages({ accounts, to, code }) {
  const found = useNewest(accounts, to, async (path) => {
    const response = await fetch(`/dev/sms?${path}`);
    return response.ok ? (await response.json()).messages : [];
  });
  return html`<${Inbox} accounts=${accounts} title=${`Messages to ${to}`} found=${found} code=${code} />`;
}

/** Return what `load` finds for `to`. Repeats this for a while after each request of the page. */
function useNewest(accounts, to, load) {
  const [found, setFound] = useState([]);
  useEffect(() => {
    let timer = null;
    let stopped = false;
    const poll = async (first) => {
      if (to && (first || Date.now() - accounts.sentAt < WATCHED_MS)) {
        const list = await load(new URLSearchParams({ to })).catch(() => []);
        if (!stopped) setFound(list);
      }
      if (!stopped) timer = setTimeout(poll, POLL_MS);
    };
    setFound([]);
    poll(true);
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [to]);
  return found;
}

function Inbox({ accounts, title, found, code }) {
  return html`<section class="inbox" aria-label=${title}>
    <h3>${title}</h3>
    ${found.length === 0 && html`<p class="muted">None yet.</p>`}
    ${found.slice(0, SHOWN).map(
      (mail) => html`<article key=${mail.id}>
        <p><strong>${mail.subject ?? mail.text}</strong> <small>${clockOf(new Date(mail.at))}</small></p>
        <div class="row">
          <${Code} accounts=${accounts} mail=${mail} field=${code} />
          ${linksIn(mail.text).map(
            ({ url, label }) => html`<a key=${url} class="button quiet small" href=${url} target="_blank" rel="noopener">${label}</a>`,
          )}
        </div>
      </article>`,
    )}
  </section>`;
}

function Code({ accounts, mail, field }) {
  const code = codeIn(mail, field);
  return (
    code &&
    html`<button type="button" onClick=${() => accounts.set(field, code)}>Use ${code.length > 8 ? "its code" : code}</button>`
  );
}

/** Return the code of a mail that belongs in `field`: that of a link for a new password, or six digits. */
function codeIn(mail, field) {
  if (field !== "random_code") return mail.code ?? mail.text.match(CODE)?.[0];
  const links = mail.text.match(LINK) ?? [];
  return links.map((link) => new URL(link).searchParams.get("random_code")).find((code) => code !== null);
}

const linksIn = (text) =>
  (text.match(LINK) ?? []).map((url) => ({ url, label: PAGES.find(([pattern]) => pattern.test(url))?.[1] ?? "Open the link" }));
