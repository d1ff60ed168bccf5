// Sales by day, one chart for each currency, with a table of the same numbers.

import { html } from "../vendor/preact.js";
import { read } from "./api.js";
import { amountOf, dayOf } from "./formats.js";
import { appFilter, Choice } from "./list.js";
import { Loaded, useLoaded } from "./loading.js";
import { go } from "./route.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.salesPage;
const DAY = 86_400_000;
const WIDTH = 720, HEIGHT = 160;
const RANGES = [["7", texts.days(7)], ["30", texts.days(30)], ["90", texts.days(90)], ["365", texts.days(365)]];

export function Sales({ route, apps }) {
  const { app, days = "30" } = route.query;
  const first = new Date(Date.now() - (Number(days) - 1) * DAY).toISOString().slice(0, 10);
  const state = useLoaded(() => read("/payments/sales", { app, first }), [app, first]);
  const choose = (changes) => go(["money", "sales"], { app, days, ...changes });
  const apply = appFilter(apps);
  return html`<section aria-label=${texts.title}>
    <form class="filters" role="search" aria-label=${texts.title} onSubmit=${(event) => event.preventDefault()}>
      <label>${apply.title}<${Choice} value=${app} options=${apply.options} onChoose=${(next) => choose({ app: next })} /></label>
      <label>${texts.range}<${Choice} value=${days} options=${RANGES} all=${null} onChoose=${(next) => choose({ days: next })} /></label>
    </form>
    <${Loaded} state=${state}>${(value) => (value.sales.length ? currenciesOf(value).map((each) => html`<${Currency} key=${each.currency} ...${each} />`) : html`<p class="empty">${texts.none}</p>`)}<//>
  </section>`;
}

/** Returns the days of each currency, also those without payments. The currency with the most payments comes first. */
function currenciesOf({ first, last, sales }) {
  const days = [];
  for (let at = Date.parse(first); at <= Date.parse(last); at += DAY) days.push(new Date(at).toISOString().slice(0, 10));
  const none = { payments: 0, amount: 0, refunds: 0, refunded: 0 };
  const sum = (rows, name) => rows.reduce((total, row) => total + row[name], 0);
  return [...new Set(sales.map((row) => row.currency))]
    .map((currency) => {
      const found = new Map(sales.filter((row) => row.currency === currency).map((row) => [row.day, row]));
      const rows = days.map((day) => ({ ...none, currency, day, ...found.get(day) }));
      return { currency, rows, paid: sum(rows, "amount"), refunded: sum(rows, "refunded"), payments: sum(rows, "payments") };
    })
    .sort((one, other) => other.payments - one.payments);
}

const columns = [
  { id: "day", title: texts.day, of: (row) => dayOf(row.day) },
  { id: "payments", title: texts.payments, number: true, of: (row) => row.payments },
  { id: "amount", title: texts.paid, number: true, of: (row) => amountOf(row.amount, row.currency) },
  { id: "refunds", title: texts.refunds, number: true, of: (row) => row.refunds },
  { id: "refunded", title: texts.refunded, number: true, of: (row) => amountOf(row.refunded, row.currency) },
];

function Currency({ currency, rows, paid, refunded, payments }) {
  const shown = rows.filter((row) => row.payments || row.refunds).reverse();
  return html`<section class="panel sales" aria-label=${currency}>
    <h2>${currency}</h2>
    <p class="sums"><strong>${amountOf(paid, currency)}</strong> ${texts.of(payments)}${refunded > 0 && html`<span class="less">${texts.less(amountOf(refunded, currency))}</span>`}</p>
    <${Chart} currency=${currency} rows=${rows} label=${texts.chart(currency, amountOf(paid, currency), amountOf(refunded, currency))} />
    <details><summary>${texts.table}</summary><${Table} label=${`${texts.title} ${currency}`} columns=${columns} rows=${shown.map((row) => ({ ...row, key: row.day }))} /></details>
  </section>`;
}

/** Bars: what was paid above the line, and what was given back below it. */
function Chart({ currency, rows, label }) {
  const top = Math.max(...rows.map((row) => row.amount), 1), bottom = Math.max(...rows.map((row) => row.refunded), 0);
  const scale = HEIGHT / (top + bottom), zero = top * scale, step = WIDTH / rows.length, wide = Math.max(1, Math.min(step - 2, 40));
  const bar = (row, index, y, height, kind) => height > 0 && html`<rect class=${kind} x=${index * step + (step - wide) / 2} y=${y} width=${wide} height=${Math.max(height, 1)} rx="1" />`;
  return html`<figure class="chart"><p class="axis" aria-hidden="true">${amountOf(top, currency)}</p>
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT + 1}`} role="img" aria-label=${label} preserveAspectRatio="none">
      ${rows.map((row, index) => html`<g key=${row.day}><title>${texts.bar(dayOf(row.day), amountOf(row.amount, currency), amountOf(row.refunded, currency))}</title>
        <rect class="hit" x=${index * step} y="0" width=${step} height=${HEIGHT} />
        ${bar(row, index, zero - row.amount * scale, row.amount * scale, "paid")}${bar(row, index, zero, row.refunded * scale, "back")}</g>`)}
      <line class="zero" x1="0" x2=${WIDTH} y1=${zero} y2=${zero} />
    </svg>
    <figcaption><span>${dayOf(rows[0].day)}</span><span>${dayOf(rows.at(-1).day)}</span></figcaption>
  </figure>`;
}
