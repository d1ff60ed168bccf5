// The export of what a person has left here. It contains conversations, so only admins export and read it.

import { html, useState } from "../vendor/preact.js";
import { Action } from "./action.js";
import { read } from "./api.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.userExport;
const POLLS = 60;
const POLL_MS = 1_000;
const LINK_MS = 600_000;
const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** `path`: that of the user. `found`: the last export, if its file exists. */
export function Export({ path, found, isAdmin }) {
  const [state, setState] = useState(found);
  const [url, setUrl] = useState("");
  if (!isAdmin) return html`<button type="button" class="quiet small" disabled title=${texts.needsAdmin}>${texts.begin}</button>
    <small class="muted">${texts.needsAdmin}</small>`;
  const wait = async (begun) => {
    setUrl("");
    setState(begun);
    for (let polls = 0, now = begun; now.status === "running" && polls < POLLS; polls++) {
      await later(POLL_MS);
      now = await read(`${path}/export`);
      setState(now);
    }
  };
  const begin = ({ send }) => send("POST", `${path}/export`);
  const link = ({ send }) => send("POST", `${path}/export/link`);
  const show = (answer) => {
    setUrl(answer.url);
    later(LINK_MS).then(() => setUrl(""));
  };
  const again = state && (state.status === "failed" ? texts.failed : texts.again);
  return html`${url && html`<a class="button small" href=${url} download>${texts.download}</a>`}
    ${!url && state?.status === "finished" && html`<${Action} title=${texts.link} text=${texts.linkText} reason onRun=${link} onDone=${show} />`}
    ${state?.status === "running"
      ? html`<button type="button" class="quiet small" disabled>${texts.running}</button>`
      : html`<${Action} title=${again || texts.begin} text=${texts.beginText} reason onRun=${begin} onDone=${wait} />`}`;
}
