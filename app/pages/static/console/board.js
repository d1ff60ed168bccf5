// One leaderboard: its periods, the ranks and rewards of one of them, and the rewards again.

import { html, useState } from "../vendor/preact.js";
import { Action } from "./action.js";
import { read } from "./api.js";
import { List } from "./list.js";
import { Loaded, useLoaded } from "./loading.js";
import { Badge, Crumbs, Facts, Time } from "./parts.js";
import { hrefOf } from "./route.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";
import { UserLink } from "./users.js";

const texts = TEXTS.engagementPage;

export function Board({ route, canEdit }) {
  const [, app, board, period] = route.parts;
  const path = `/leaderboards/${encodeURIComponent(app)}/${encodeURIComponent(board)}`;
  const steps = [[TEXTS.engagement, hrefOf(["engagement"])], [texts.tabs.boards, hrefOf(["engagement", "boards"])]];
  if (period) return html`<${Period} ...${{ app, board, period, path, canEdit, steps }} />`;
  const columns = [
    { id: "period", title: texts.period, of: (row) => html`<a href=${hrefOf(["engagement", "boards", app, board, row.period])}><${Time} at=${row.period} /></a>` },
    { id: "ends", title: texts.ends, of: (row) => html`<${Time} at=${row.ends_at} />` },
    { id: "state", title: texts.status, of: (row) => html`<${Badge} state=${row.state} tone=${row.state === "open" ? "good" : row.state === "rewarding" ? "waiting" : ""} text=${texts.states[row.state]} />` },
    { id: "rewarded", title: texts.rewarded, of: (row) => html`<${Time} at=${row.rewarded_at} />` },
  ];
  return html`<div><${Crumbs} steps=${steps} /><header class="head"><h1>${board}</h1></header>
    <${List} label=${texts.periods} parts=${["engagement", "boards", app, board]} route=${route} path=${path} field="periods" columns=${columns} keyOf=${(row) => row.period} empty=${texts.noPeriods} /></div>`;
}

function Period({ app, board, period, path, canEdit, steps }) {
  const [changes, setChanges] = useState(0);
  const at = `${path}/${encodeURIComponent(period)}`;
  const state = useLoaded(() => Promise.all([read(at), read(`${at}/ranks`)]), [at, changes]);
  const columns = [
    { id: "rank", title: texts.rank, number: true, of: (row) => row.rank },
    { id: "user", title: texts.user, of: (row) => html`<${UserLink} app=${app} user=${row.member} />` },
    { id: "score", title: texts.score, number: true, of: (row) => row.score },
  ];
  const again = ({ send }) => send("POST", `${at}/rewards`, {});
  return html`<div><${Crumbs} steps=${[...steps, [board, hrefOf(["engagement", "boards", app, board])]]} />
    <${Loaded} state=${state}>${([found, ranks]) => html`
      <header class="head"><h1>${board}</h1><${Badge} state=${found.state} text=${texts.states[found.state]} />
        ${canEdit && found.state === "closed" && html`<div class="actions"><${Action} title=${texts.rewardAgain} text=${texts.rewardAgainText} reason name=${board} onRun=${again} onDone=${() => setChanges(changes + 1)} /></div>`}</header>
      ${changes > 0 && html`<p class="good" role="status">${texts.rewarding}</p>`}
      <div class="panel"><${Facts} rows=${[
        [texts.period, html`<${Time} at=${found.period} />`], [texts.ends, html`<${Time} at=${found.ends_at} />`], [texts.scores, found.scores],
        [texts.rewards, texts.granted(found.granted, found.rewards)], [texts.winners, found.url && html`<a href=${found.url} download>${texts.download}</a>`],
      ]} /></div>
      <h2>${texts.ranks}</h2>
      <${Table} label=${texts.ranks} columns=${columns} rows=${ranks.entries.map((row) => ({ ...row, key: row.member }))} />`}<//></div>`;
}
