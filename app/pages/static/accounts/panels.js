// The forms of the platforms that are no third parties, and the pages about the current user.

import { html } from "../vendor/preact.js";
import { EmailCode, EmailPassword, OwnEmail } from "./email_panels.js";
import { Action, Field, Result, SignUp, Step } from "./fields.js";
import { Messages } from "./inbox.js";
import { OwnPassword, OwnSessions } from "./user_panels.js";

const NO_USER = "Log in first";

/** Return the panel of a platform or a page of the current user; undefined for third parties. */
export const panelOf = (id) => PANELS[id];

function Local({ accounts, platform, field, label, bound = false, name = field }) {
  const body = () => ({ [platform]: { [field]: accounts.values[name] } });
  return html`
    <${Step}>
      <${Field} accounts=${accounts} name=${name} label=${label} />
      <div class="row actions">
        <${Action} accounts=${accounts} primary label="Log in" onAct=${() => accounts.logIn(body())} />
        ${bound &&
        html`<${Action}
          accounts=${accounts}
          label="Bind"
          reason=${accounts.user ? "" : NO_USER}
          onAct=${() => accounts.bind(body())}
        />`}
        <${Action}
          accounts=${accounts}
          label="New id"
          onAct=${() => accounts.set(name, `${platform.slice(0, 6)}-${crypto.getRandomValues(new Uint32Array(1))[0]}`)}
        />
      </div>
    <//>
    <${Result} accounts=${accounts} />
  `;
}

function NamePassword({ accounts }) {
  const { name, password } = accounts.values;
  const body = { name_password: { name, password } };
  return html`
    <${Step}>
      <${Field} accounts=${accounts} name="name" label="Name" />
      <${Field} accounts=${accounts} name="password" label="Password" />
      <div class="row actions">
        <${Action} accounts=${accounts} primary label="Log in" onAct=${() => accounts.logIn(body)} />
        <${SignUp} accounts=${accounts} body=${body} />
      </div>
    <//>
    <${Result} accounts=${accounts} />
  `;
}

function Phone({ accounts }) {
  const { phone_number, phone_code } = accounts.values;
  return html`
    <${Step}>
      <${Field} accounts=${accounts} name="phone_number" label="Phone number" type="tel" />
      <${Field} accounts=${accounts} name="phone_code" label="Code" inputmode="numeric" />
      <div class="row actions">
        <${Action}
          accounts=${accounts}
          label="Send a code"
          onAct=${() =>
            accounts.act({
              name: "Send a code",
              path: "/bp/user/send_phone_verify_code",
              body: { phone_number },
              done: () => `Code sent to ${phone_number}`,
            })}
        />
        <${Action}
          accounts=${accounts}
          primary
          label="Log in"
          onAct=${() => accounts.logIn({ phone: { phone_number, verify_code: phone_code } })}
        />
      </div>
    <//>
    <${Result} accounts=${accounts} />
    <${Messages} accounts=${accounts} to=${phone_number} code="phone_code" />
  `;
}

function BpAuth({ accounts }) {
  return html`
    <${Step}>
      <${Field}
        accounts=${accounts}
        name="bp_auth_token"
        label="Token"
        hint="The newest one that this page has received, from a login at a third party or a refused bind. It can be used once."
      />
      <div class="row actions">
        <${Action}
          accounts=${accounts}
          primary
          label="Log in"
          onAct=${() => accounts.logIn({ bp_auth_token: accounts.values.bp_auth_token ?? "" })}
        />
      </div>
    <//>
    <${Result} accounts=${accounts} />
  `;
}

const PANELS = {
  device: ({ accounts }) => html`<${Local} accounts=${accounts} platform="device" field="id" name="device_id" label="Id of the device" />`,
  anonymity: ({ accounts }) => html`<${Local} accounts=${accounts} platform="anonymity" field="local_uid" label="Id on this device" />`,
  android_games_service: ({ accounts }) =>
    html`<${Local} accounts=${accounts} platform="android_games_service" field="player_id" label="Id of the player" bound />`,
  name_password: NamePassword,
  email_password: EmailPassword,
  email_code: EmailCode,
  phone: Phone,
  bp_auth_token: BpAuth,
  email: OwnEmail,
  password: OwnPassword,
  sessions: OwnSessions,
};
