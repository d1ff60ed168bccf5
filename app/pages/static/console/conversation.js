// What was said in a conversation, for admins.

import { html } from "../vendor/preact.js";
import { read } from "./api.js";
import { Loaded, useLoaded } from "./loading.js";
import { Badge, Crumbs, Time } from "./parts.js";
import { hrefOf } from "./route.js";
import { TEXTS } from "./texts.js";
import { userHref } from "./users.js";

const texts = TEXTS.conversationPage;
const textOf = (part) => part.text ?? part.transcript ?? (part.audio ? texts.audio : JSON.stringify(part));

export function Conversation({ route }) {
  const [app, user, , id] = route.parts;
  const { before } = route.query;
  const state = useLoaded(() => read(`/conversations/${encodeURIComponent(app)}/${encodeURIComponent(id)}`, { before }), [id, before]);
  return html`<${Crumbs} steps=${[[TEXTS.users, hrefOf(["users"], { app })], [`${user.slice(0, 8)}…`, userHref(app, user)], [texts.title]]} />
    <header class="head"><h1>${texts.title}</h1></header>
    <p class="lead">${texts.lead}</p>
    <${Loaded} state=${state}>${(value) => html`
      <ol class="turns">${[...value.records].reverse().map((turn) => html`<li key=${turn.record_id}>
        <header><strong>#${turn.record_id}</strong> <${Badge} state=${turn.status} /> <small class="muted">${turn.strategy}</small> <${Time} at=${turn.created_at} /></header>
        ${turn.messages.map((message, index) => html`<div key=${index} class=${`message ${message.role === "user" ? "theirs" : ""}`}>
          <small class="muted">${message.role}</small>
          ${[message.content ?? []].flat().map((part, number) => html`<p key=${number}>${typeof part === "string" ? part : textOf(part)}</p>`)}</div>`)}
      </li>`)}</ol>
      ${value.next && html`<p><a class="button" href=${hrefOf(["users", app, user, "conversations", id], { before: value.next })}>${texts.earlier}</a></p>`}`}<//>`;
}
