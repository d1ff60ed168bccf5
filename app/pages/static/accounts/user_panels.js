// What the current user may change and list, besides its email address.

import { dateOf } from "../shared/times.js";
import { html } from "../vendor/preact.js";
import { Action, Field, Result, Step } from "./fields.js";
import { providerTitle } from "./user.js";

const NO_USER = "Log in first";

const found = ({ length }, what) => `${length} ${what}${length === 1 ? "" : "s"} found`;

export function OwnPassword({ accounts }) {
  const { password, new_password } = accounts.values;
  return html`
    <${Step}>
      <${Field} accounts=${accounts} name="password" label="Current password" />
      <${Field} accounts=${accounts} name="new_password" label="New password" />
      <div class="row actions">
        <${Action}
          accounts=${accounts}
          primary
          label="Change"
          reason=${accounts.user ? "" : NO_USER}
          onAct=${() =>
            accounts.actAsUser({
              name: "Change the password",
              method: "PUT",
              path: "/bp/user/me/password",
              body: { origin_password: password, password: new_password },
              done: () => "Password changed. All other sessions have ended.",
            })}
        />
      </div>
    <//>
    <${Result} accounts=${accounts} />
  `;
}

export function OwnSessions({ accounts }) {
  const reason = accounts.user ? "" : NO_USER;
  const read = (name, path, done) =>
    accounts.act({ name, method: "GET", path: `/bp/user/me/${path}`, token: accounts.token, done });
  const list = () => read("List the sessions", "sessions", ({ sessions }) => found(sessions, "session"));
  const listed = accounts.exchanges.list.find(({ token, answer }) => token === accounts.token && answer?.sessions);
  const end = async (id) => {
    const path = `/bp/user/me/sessions/${id}`;
    await accounts.actAsUser({ name: "End the session", method: "DELETE", path, done: () => "Session ended" });
    await list();
  };
  return html`
    <${Step}>
      <div class="row actions">
        <${Action}
          accounts=${accounts}
          primary
          label="List the profiles"
          reason=${reason}
          onAct=${() => read("List the profiles", "social_profiles", ({ social_profiles }) => found(social_profiles, "profile"))}
        />
        <${Action}
          accounts=${accounts}
          label="List the sessions"
          reason=${reason}
          onAct=${list}
        />
      </div>
    <//>
    <${Result} accounts=${accounts} />
    <ul class="sessions">
      ${listed?.answer.sessions.map(
        ({ session_id, login_platform, current, created_at }) => html`<li key=${session_id}>
          <span>
            <strong>${providerTitle(accounts, login_platform)}</strong>
            <small>${dateOf(created_at)}${current ? ", this session" : ""}</small>
          </span>
          ${!current && html`<${Action} accounts=${accounts} label="End" onAct=${() => end(session_id)} />`}
        </li>`,
      )}
    </ul>
  `;
}
