// Small parts of all areas: states, times, ids that can be copied, and facts.

import { clockOf, shortDateOf } from "../shared/times.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { withShortIds } from "./formats.js";
import { Icon } from "./icons.js";
import { TEXTS } from "./texts.js";

const GOOD = new Set(["active", "done", "sent", "paid", "COMPLETED", "succeeded", "ACTIVE", "granted", "closed", "SUCCESS", "proven", "ready", "trialing"]);
const BAD = new Set(["failed", "dead", "FAILED", "refused", "VOIDED", "CANCELLED", "canceled", "unknown", "deactivated", "banned", "abandoned",
  "declined", "webhook_failed", "paid_not_granted", "amount_differs", "held", "open"]);
const WAITING = new Set(["received", "waiting", "sending", "frozen", "CREATED", "APPROVED", "NEW", "new", "in_progress", "START", "rewarding",
  "processing", "starting", "requires_payment_method", "requires_action", "not_approved", "not_captured", "needs_customer", "suppressed", "half_open"]);

/** The colour of a state: `good`, `bad`, `waiting` or empty. */
const toneOf = (state) => (GOOD.has(state) ? "good" : BAD.has(state) ? "bad" : WAITING.has(state) ? "waiting" : "");

export const Badge = ({ state, text, tone }) =>
  html`<span class=${`badge ${tone ?? toneOf(state)}`}>${text ?? TEXTS.states[state] ?? String(state).replaceAll("_", " ")}</span>`;

function timeOf(text) {
  const at = new Date(text);
  const sameDay = at.toDateString() === new Date().toDateString();
  return sameDay ? TEXTS.today(clockOf(at)) : shortDateOf(at);
}

export const Time = ({ at }) => (at && !at.startsWith("0001") ? html`<time datetime=${at} title=${at}>${timeOf(at)}</time>` : html`<span class="muted none">–</span>`);

/** An id, shortened in the middle, with a button that copies it. */
export function Id({ value, short = true }) {
  const [copied, setCopied] = useState(false);
  if (!value) return html`<span class="muted none">–</span>`;
  const copy = async () => {
    await navigator.clipboard?.writeText(value).catch(() => {});
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  const text = short && value.length > 18 ? `${value.slice(0, 8)}…${value.slice(-6)}` : value;
  return html`<span class="id"><code title=${value}>${text}</code><button class="plain" type="button" title=${TEXTS.copy}
    aria-label=${`${TEXTS.copy} ${value}`} onClick=${copy}>${copied ? html`<span class="ok">✓</span>` : html`<${Icon} name="copy" />`}</button></span>`;
}

/** What a cell shows first, and what it shows below in small letters. */
export const Stacked = ({ children, below }) => html`<span class="answers">${children}${below && html`<small class="muted">${below}</small>`}</span>`;

/** A text by a person, a vendor or a platform, with its ids shortened. */
export const Said = ({ text }) => text ? html`<span class="why" title=${text}>${withShortIds(text)}</span>` : html`<span class="muted none">–</span>`;

/** Names with values. `rows`: `[name, value]`; empty values are left out. */
export const Facts = ({ rows }) => html`<dl class="facts">${rows
  .filter(([, value]) => value !== undefined && value !== null && value !== "")
  .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

export const Note = ({ tone, children, title }) => html`<div class=${`note ${tone}`} role=${tone === "bad" ? "alert" : "note"}>
  ${title && html`<strong>${title}</strong>`}<div>${children}</div></div>`;

export const Crumbs = ({ steps }) => html`<p class="crumbs">${steps.map(([text, href], index) => html`${index > 0 && html`<span aria-hidden="true"> / </span>`}
  ${href ? html`<a href=${href}>${text}</a>` : text}`)}</p>`;

/** Links between the lists of one area. `tabs`: `[id, text, href]`. */
export function Tabs({ label, tabs, current }) {
  const nav = useRef();
  useEffect(() => {
    const at = nav.current.querySelector("[aria-current]"); // On a narrow screen it may be out of sight.
    nav.current.scrollLeft = at ? at.offsetLeft - nav.current.offsetLeft - (nav.current.clientWidth - at.offsetWidth) / 2 : 0;
  }, [current]);
  return html`<nav class="tabs" ref=${nav} aria-label=${label}>${tabs.map(([id, text, href]) =>
    html`<a key=${id} href=${href} aria-current=${id === current ? "page" : null}>${text}</a>`)}</nav>`;
}
