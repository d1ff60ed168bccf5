// A leaderboard that fills while one watches: other users upload scores, and the ranks are read again and again.

import { outcome, succeeded } from "../accounts/exchanges.js";
import { html, useLayoutEffect, useRef } from "../vendor/preact.js";

const BOARD = "weekly";
const SHOWN = 10;
const PAUSE_MS = 300;
const UPLOADS_PER_READ = 3;
const OWN_POINTS = 50;
const MOST_POINTS = 40;
const MOVE_MS = 300;

export class Board {
  #exchanges;
  #onChange;
  #sent = {}; // The last exchange of each kind, which the next one replaces in the list of requests.

  constructor(exchanges, onChange) {
    this.#exchanges = exchanges;
    this.#onChange = onChange;
    this.players = [];
    this.ranks = [];
    this.selfRank = 0;
    this.running = false;
    this.problem = "";
  }

  nameOf = (uid) => this.players.find((player) => player.uid === uid)?.name ?? `User ${uid.slice(-4)}`;

  async begin(players) {
    this.players = players;
    await this.read();
  }

  /** Let the others play until `stop` is called, the page is hidden, or a request fails. */
  async start() {
    this.running = true;
    this.#onChange();
    for (let uploads = 1; this.running; uploads++) {
      const player = this.players[1 + Math.floor(Math.random() * (this.players.length - 1))];
      const done = await this.#upload(player, 1 + Math.floor(Math.random() * MOST_POINTS));
      if (done && uploads % UPLOADS_PER_READ === 0) await this.read();
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      if (document.hidden) this.stop();
    }
  }

  stop() {
    this.running = false;
    this.#onChange();
  }

  async score() {
    if (await this.#upload(this.players[0], OWN_POINTS)) await this.read();
  }

  /** A score replaces the earlier one, so the page adds the points. */
  async #upload(player, points) {
    const score = player.score + points;
    const body = { name: BOARD, data: { score } };
    const request = { name: `Upload a score of ${player.name}`, path: "/bp/leaderboard/data", body, token: player.token };
    if (!(await this.#send("upload", request))) return false;
    player.score = score;
    return true;
  }

  async read() {
    const body = { name: BOARD, from: 1, to: SHOWN };
    const request = { name: "Query the board", path: "/bp/leaderboard", body, token: this.players[0].token };
    if (!(await this.#send("read", request))) return;
    const { rank_data, self_rank } = this.#sent.read.answer.leaderboard;
    Object.assign(this, { ranks: rank_data, selfRank: self_rank });
    for (const { member, score } of rank_data) {
      const player = this.players.find(({ uid }) => uid === member);
      if (player) player.score = Math.max(player.score, score); // The page may have been opened again.
    }
    this.#onChange();
  }

  async #send(kind, request) {
    const exchange = await this.#exchanges.send({ ...request, aside: true, replaces: this.#sent[kind] });
    this.#sent[kind] = exchange;
    this.problem = succeeded(exchange) ? "" : outcome(exchange);
    if (this.problem) this.stop();
    return !this.problem;
  }
}

export function BoardPanel({ board }) {
  const list = useRef(null);
  useMoves(list, board.ranks);
  const best = board.ranks[0]?.score ?? 1;
  return html`<section class="flow" aria-labelledby="board-title">
    <header>
      <h2 id="board-title">Leaderboard</h2>
      <code>${BOARD}</code>
      ${board.selfRank > 0 && html`<span class="tag">you are ${ordinal(board.selfRank)}</span>`}
    </header>
    <div class="row">
      ${board.running
        ? html`<button type="button" onClick=${() => board.stop()}>Stop the game</button>`
        : html`<button type="button" disabled=${board.players.length === 0} onClick=${() => board.start()}>Start a game</button>`}
      <button type="button" class="quiet" disabled=${board.players.length === 0} onClick=${() => board.score()}>
        Score ${OWN_POINTS} points
      </button>
    </div>
    ${board.problem && html`<p class="result result-bad" role="alert">${board.problem}</p>`}
    ${board.ranks.length === 0
      ? html`<p class="empty">Nobody has a score this week. Start a game: nine users upload scores, and you can join in.</p>`
      : html`<ol class="ranks" ref=${list}>
          ${board.ranks.map(
            ({ member, score, rank }) => html`<li key=${member} data-member=${member} class=${member === board.players[0]?.uid ? "own" : ""}>
              <span class="rank">${rank}</span>
              <span class="name">${board.nameOf(member)}</span>
              <progress aria-hidden="true" max=${Math.max(best, 1)} value=${Math.max(score, 0)}></progress>
              <span class="score">${score}</span>
            </li>`,
          )}
        </ol>`}
  </section>`;
}

/** Let each row slide from its earlier place to its new one. */
function useMoves(list, ranks) {
  const tops = useRef(new Map());
  useLayoutEffect(() => {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const rows = [...(list.current?.children ?? [])];
    const now = new Map(rows.map((row) => [row.dataset.member, row.offsetTop]));
    for (const row of still ? [] : rows) {
      const moved = (tops.current.get(row.dataset.member) ?? row.offsetTop) - row.offsetTop;
      if (moved) row.animate([{ transform: `translateY(${moved}px)` }, { transform: "none" }], { duration: MOVE_MS, easing: "ease-out" });
    }
    tops.current = now;
  }, [ranks]);
}

const PLURALS = new Intl.PluralRules("en", { type: "ordinal" });
const ordinal = (rank) => `${rank}${{ one: "st", two: "nd", few: "rd", other: "th" }[PLURALS.select(rank)]}`;
