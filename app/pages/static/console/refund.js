// The refund of a payment: how much of it is left, what the refund does, the reason, and the result.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { failure, writeWith } from "./action.js";
import { read, userPath } from "./api.js";
import { amountOf, majorOf, minorOf } from "./formats.js";
import { Loaded, useLoaded } from "./loading.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.refundDialog;
const PAID = new Set(["COMPLETED", "succeeded", "ACTIVE", "SUSPENDED", "CANCELLED", "EXPIRED", "active", "trialing", "past_due", "unpaid", "canceled"]);

/** Whether something of an order or a subscription may have been paid. A payment that was canceled was not. */
const mayBePaid = (order) => Boolean(order.platform_id) && PAID.has(order.status) && !(order.status === "canceled" && order.amount !== undefined);

/** A button that refunds an order or the last period of a subscription. `onDone(text)` gets what has become of it. */
export function Refund({ order, onDone }) {
  const [open, setOpen] = useState(false);
  if (!mayBePaid(order)) return null;
  return html`<button type="button" class="quiet small dangerous" onClick=${() => setOpen(true)}>${texts.refund}</button>
    ${open && html`<${Dialog} order=${order} onDone=${onDone} onClose=${() => setOpen(false)} />`}`;
}

function Dialog({ order, onDone, onClose }) {
  const dialog = useRef();
  const path = `${userPath(order.app, order.user_id)}/orders/${encodeURIComponent(order.row_id)}/refund`;
  const state = useLoaded(() => read(path), [path]);
  useEffect(() => dialog.current.showModal(), []);
  return html`<dialog ref=${dialog} onClose=${onClose} aria-labelledby="refund-title">
    <h2 id="refund-title">${texts.title}</h2>
    <${Loaded} state=${state}>${(payment) => (payment.left ? html`<${Form} ...${{ payment, path, onDone, onClose }} />` : html`<p>${texts.nothing(amountOf(payment.paid, payment.currency))}</p>`)}<//>
    ${!state.value?.left && html`<div class="actions end"><button type="button" class="quiet" onClick=${onClose}>${TEXTS.cancel}</button></div>`}
  </dialog>`;
}

function Form({ payment, path, onDone, onClose }) {
  const { left, paid, currency, subscription } = payment;
  // The same for each attempt from this dialog, so that a repeated one refunds once.
  const [key] = useState(() => crypto.randomUUID());
  const [typed, setTyped] = useState(majorOf(left, currency));
  const [reason, setReason] = useState("");
  const [state, setState] = useState({});
  const amount = minorOf(typed, currency);
  const valid = Number.isInteger(amount) && amount > 0 && amount <= left;
  const submit = async (event) => {
    event.preventDefault();
    setState({ running: true });
    try {
      const made = await writeWith(reason.trim(), "POST", path, { amount, ...(subscription && { payment: payment.sale_id }) }, { "Idempotency-Key": key });
      onDone(texts.states[made.state](amountOf(made.amount, made.currency)));
      onClose();
    } catch (error) {
      setState(failure(error));
    }
  };
  const effect = amount < left ? texts.part : subscription ? texts.wholePeriod : texts.whole;
  return html`<form onSubmit=${submit}>
    <p>${texts.left(amountOf(left, currency), amountOf(paid, currency))}</p>
    <label>${texts.amount(currency)}<input inputmode="decimal" required value=${typed} aria-invalid=${valid ? null : "true"} readonly=${state.isUncertain} onInput=${(event) => setTyped(event.currentTarget.value)} />
      ${!valid && html`<small class="error">${texts.tooMuch(amountOf(left, currency))}</small>`}</label>
    ${valid && html`<p class="muted" role="status">${effect}</p>`}
    <label>${TEXTS.action.reason}<input required maxlength="500" value=${reason} readonly=${state.isUncertain} onInput=${(event) => setReason(event.currentTarget.value)} /><small>${TEXTS.action.reasonHelp}</small></label>
    ${state.error && html`<p class="error" role="alert">${state.error}</p>`}
    <div class="actions end"><button type="button" class="quiet" onClick=${onClose}>${TEXTS.cancel}</button>
      <button class="danger" disabled=${!valid || !reason.trim() || state.running} aria-busy=${state.running ? "true" : null}>
        ${state.running ? TEXTS.action.running : valid ? texts.confirm(amountOf(amount, currency)) : texts.refund}</button></div>
  </form>`;
}
