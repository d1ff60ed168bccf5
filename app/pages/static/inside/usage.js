// What a request used, and what it cost if the app has prices.

import { html } from "../vendor/preact.js";
import { amount, counted, duration, size } from "./formats.js";

const AUDIO = "assistant_output_audio_chunk";
const SAMPLE_BYTES = 2;
const WAV_HEADER = 44;

/** `streamUrl`: the address of the stream in the console, which has the usage of each attempt, or null. */
export function Usage({ record, streamUrl }) {
  const rows = usageOf(record);
  if (rows.length === 0) return null;
  return html`<section>
    <h3 id="usage-title">Usage</h3>
    <dl class="usage" aria-labelledby="usage-title">
      ${rows.map(([title, value]) => html`<div key=${title}><dt>${title}</dt><dd>${value}</dd></div>`)}
    </dl>
    ${streamUrl && html`<p><a href=${streamUrl}>Usage and cost of each attempt in the console</a></p>`}
  </section>`;
}

function usageOf(record) {
  const { end } = record;
  if (!end) return [];
  const price = end.unit_price;
  const rows = [];
  if (price) {
    rows.push(["Language model, input", counted(price.input_token, "token")], ["Language model, output", counted(price.output_token, "token")]);
  }
  rows.push(["Text of the answer", counted(end.digest.chars, "character")]);
  const audio = audioOf(record);
  if (audio) rows.push(["Audio of the answer", audio]);
  const cost = price ? price.input_token * price.input_per_price + price.output_token * price.output_per_price : 0;
  if (cost > 0) rows.push(["Price of the model, in the app's currency", amount(cost)]);
  return rows;
}

/** The audio of the answer: its duration if its format tells it, or else its size. */
function audioOf(record) {
  const chunks = record.events.filter(({ name }) => name === AUDIO);
  if (chunks.length === 0) return null;
  const { mime_type, sample_rate } = chunks[0].content;
  const bytes = chunks.reduce((sum, { content }) => sum + Math.floor((content.audio.length * 3) / 4), 0);
  if (!mime_type?.includes("wav") || !sample_rate) return `${size(bytes)}, ${mime_type ?? "unknown format"}`;
  const headers = WAV_HEADER * chunks.filter(({ content }) => content.mime_type).length;
  return `${duration((1_000 * (bytes - headers)) / (SAMPLE_BYTES * sample_rate))}, ${size(bytes)}`;
}
