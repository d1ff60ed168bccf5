// An image task: its progress, its picture, and what can be made of that.

import { outcome, succeeded } from "../accounts/exchanges.js";
import { html, useState } from "../vendor/preact.js";

const STRATEGY = "local";
const POLL_MS = 500;
const ENDED = new Set(["finished", "failed"]);
const QUARTERS = ["1", "2", "3", "4"];
const SIDES = ["left", "right", "up", "down"];

export class Picture {
  #exchanges;
  #onChange;

  constructor(exchanges, onChange) {
    this.#exchanges = exchanges;
    this.#onChange = onChange;
    this.player = null;
    this.task = null;
    this.url = ""; // Of the newest picture, which stays until the next one is there.
    this.busy = false;
    this.problem = "";
  }

  draw = (prompt) => this.#make("imagine", { prompt, aspect_ratio: "3:2" });

  enlarge = (index) => this.#make("upscale", { origin_task_id: this.task.task_id, index });

  widen = (direction) => this.#make("pan", { origin_task_id: this.task.task_id, direction });

  async #make(type, data) {
    if (this.busy) return;
    this.busy = true;
    const body = { strategy: STRATEGY, type, data };
    const token = this.player.token;
    let read = null;
    if (this.#take(await this.#send({ name: `Begin a task: ${type}`, path: "/bp/ai/imagine", body, token }))) {
      while (!ENDED.has(this.task.status)) {
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        const path = `/bp/ai/imagine/${this.task.task_id}`;
        read = await this.#send({ name: "Read the task", method: "GET", path, token, aside: true, replaces: read });
        if (!this.#take(read)) break;
      }
    }
    this.busy = false;
    this.#onChange();
  }

  #send(request) {
    const sending = this.#exchanges.send(request);
    this.#onChange();
    return sending;
  }

  #take(exchange) {
    this.problem = succeeded(exchange) ? "" : outcome(exchange);
    if (!this.problem) {
      this.task = exchange.answer.data;
      const { image_url, message } = this.task.task_result;
      if (this.task.status === "finished") this.url = image_url;
      if (this.task.status === "failed") this.problem = message || "The task has failed";
    }
    this.#onChange();
    return !this.problem;
  }
}

export function PicturePanel({ picture }) {
  const [prompt, setPrompt] = useState("a boat at sunset");
  const { busy, player, problem, task, url } = picture;
  return html`<section class="flow" aria-labelledby="picture-title">
    <header>
      <h2 id="picture-title">Image</h2>
      <code>${STRATEGY}</code>
      ${task && html`<span class="tag">${task.status}</span>`}
    </header>
    <form
      class="line"
      onSubmit=${(event) => {
        event.preventDefault();
        if (prompt.trim()) picture.draw(prompt.trim());
      }}
    >
      <input aria-label="Prompt" value=${prompt} maxlength="500" onInput=${(event) => setPrompt(event.currentTarget.value)} />
      <button disabled=${busy || player === null}>Draw</button>
    </form>
    <${Progress} picture=${picture} />
    ${problem && html`<p class="result result-bad" role="alert">${problem}</p>`}
    ${url
      ? html`<div class="picture">
          <img src=${url} alt=${`Picture of ${prompt}`} />
          <${Choices} picture=${picture} />
        </div>`
      : html`<p class="empty">A generator of this server draws four pictures, without a vendor. Choose one to enlarge it.</p>`}
  </section>`;
}

function Progress({ picture: { busy, task } }) {
  const percent = busy && task && !ENDED.has(task.status) ? task.task_result.task_progress : 0;
  return html`<progress class="task" aria-label="Progress of the image" max="100" value=${busy ? percent : 0} hidden=${!busy}></progress>`;
}

function Choices({ picture }) {
  const { busy, task } = picture;
  if (busy || task.status !== "finished") return null;
  if (task.meta.task_type === "imagine") {
    return html`<div class="quarters">
      ${QUARTERS.map(
        (index) => html`<button type="button" aria-label=${`Enlarge picture ${index}`} onClick=${() => picture.enlarge(index)}><span>${index}</span></button>`,
      )}
    </div>`;
  }
  return html`<div class="row sides" role="group" aria-label="Show more">
    ${SIDES.map((side) => html`<button type="button" class="quiet" onClick=${() => picture.widen(side)}>More ${side}</button>`)}
  </div>`;
}
