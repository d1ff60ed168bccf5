// The export of what a person has left here. It contains conversations, so only admins export and read it.

import { html, useEffect, useState } from "../vendor/preact.js";
import { Action } from "./action.js";
import { read } from "./api.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.userExport;
const POLL_MS = 1_000;
const LINK_MS = 600_000;

/** `path`: that of the user. `found`: the last export, if its file exists. `isErasing`: the export may be deleted already. */
export function Export({ path, found, isAdmin, isErasing }) {
  const [state, setState] = useState(found);
  const [url, setUrl] = useState("");
  useEffect(() => {
    const poll = () => read(`${path}/export`, {}, { background: true }).then(setState, () => setState({ ...state }));
    const timer = isAdmin && !isErasing && state?.status === "running" && setTimeout(poll, POLL_MS);
    return () => clearTimeout(timer);
  }, [state, isErasing]);
  if (!isAdmin) return html`<button type="button" class="quiet small" disabled title=${texts.needsAdmin}>${texts.begin}</button>
    <small class="muted">${texts.needsAdmin}</small>`;
  const begun = (answer) => {
    setUrl("");
    setState(answer);
  };
  const begin = ({ send }) => send("POST", `${path}/export`);
  const link = ({ send }) => send("POST", `${path}/export/link`);
  const show = (answer) => {
    setUrl(answer.url);
    setTimeout(() => setUrl(""), LINK_MS);
  };
  const again = state && (state.status === "failed" ? texts.failed : texts.again);
  return html`${url && html`<a class="button small" href=${url} download>${texts.download}</a>`}
    ${!url && state?.status === "finished" && html`<${Action} title=${texts.link} text=${texts.linkText} reason onRun=${link} onDone=${show} />`}
    ${state?.status === "running"
      ? html`<button type="button" class="quiet small" disabled>${texts.running}</button>`
      : html`<${Action} title=${again || texts.begin} text=${texts.beginText} reason onRun=${begin} onDone=${begun} />`}`;
}
