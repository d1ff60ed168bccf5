// Keeps the list of an inbox up to date, and copies codes. The page works without it, too.

import { dateOf } from "../shared/times.js";

const POLL_MS = 2_000;
const COPIED_MS = 2_000;

const main = document.querySelector("main");
const status = () => main.querySelector("[role=status]");
const list = () => document.getElementById("kept");

/** Add new items, and remove those that are gone. The others stay as they are, so that nothing flickers. */
function merge(fresh) {
  const known = new Map([...list().children].map((item) => [item.dataset.id, item]));
  const kept = new Set([...fresh.children].map((item) => item.dataset.id));
  for (const [id, item] of known) if (!kept.has(id)) item.remove();
  let next = list().firstElementChild;
  let added = 0;
  for (const item of [...fresh.children]) {
    if (known.has(item.dataset.id)) {
      next = known.get(item.dataset.id).nextElementSibling;
    } else {
      item.querySelector("[aria-current]")?.removeAttribute("aria-current"); // Another one is open.
      list().insertBefore(item, next);
      added += 1;
    }
  }
  if (added > 0) status().textContent = `${added} new`;
}

async function refresh() {
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  const items = fresh.getElementById("kept");
  if (list() && items) merge(items);
  else if (list() || items) main.replaceChildren(...fresh.querySelector("main").children); // The first or the last one.
  complete();
}

/** Show what needs a script: the times of this place, and the buttons to copy. */
function complete() {
  for (const time of main.querySelectorAll("time:not([title])")) {
    time.title = time.textContent;
    time.textContent = dateOf(time.dateTime);
  }
  if (!navigator.clipboard) return; // The page is neither local nor loaded by HTTPS.
  for (const button of main.querySelectorAll("[data-copy][hidden]")) button.hidden = false;
}

async function poll() {
  if (!document.hidden) await refresh().catch(() => {}); // The server may be restarting.
  setTimeout(poll, POLL_MS);
}

main.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "Copied";
  status().textContent = "Copied";
  setTimeout(() => {
    button.textContent = "Copy";
  }, COPIED_MS);
});

complete();
setTimeout(poll, POLL_MS);
