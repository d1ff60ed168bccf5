// The flows of email addresses (§4.7).

import { html } from "../vendor/preact.js";
import { Action, Field, Result, SignUp, Step } from "./fields.js";
import { Emails } from "./inbox.js";

const CLIENT = "website";

export function EmailPassword({ accounts }) {
  const { email, password, random_code, new_password } = accounts.values;
  const body = { email_password: { email, password } };
  const sent = () => `If a user has ${email}, a mail is on its way`;
  return html`
    <${Step}>
      <${Field} accounts=${accounts} name="email" label="Email address" type="email" />
      <${Field} accounts=${accounts} name="password" label="Password" />
      <div class="row actions">
        <${Action} accounts=${accounts} primary label="Log in" onAct=${() => accounts.logIn(body)} />
        <${SignUp} accounts=${accounts} body=${body} />
        <${Action}
          accounts=${accounts}
          label="Check address"
          onAct=${() =>
            accounts.act({
              name: "Check address",
              path: "/bp/user/detect",
              body: { email },
              done: ({ email_data }) => `${email} is ${email_data.exists ? "" : "not "}in use`,
            })}
        />
        <${Action}
          accounts=${accounts}
          label="Forgot password"
          onAct=${() =>
            accounts.act({
              name: "Forgot password",
              path: "/bp/user/email/forgot_password",
              body: { email, platform: CLIENT },
              done: sent,
            })}
        />
      </div>
    <//>
    <${Result} accounts=${accounts} />
    <${Emails} accounts=${accounts} to=${email} code="random_code" />
    <${Step} title="Set a new password">
      <${Field} accounts=${accounts} name="random_code" label="Code from the mail" hint="The link in the mail leads to a page that does the same." />
      <${Field} accounts=${accounts} name="new_password" label="New password" />
      <div class="row actions">
        <${Action}
          accounts=${accounts}
          primary
          label="Set the password"
          onAct=${() =>
            accounts.act({
              name: "Set the password",
              path: "/bp/user/email/reset_password",
              body: { random_code, password: new_password },
              done: () => "The password was set",
            })}
        />
      </div>
    <//>
  `;
}

/** The button that sends a code to an email address. */
const SendCode = ({ accounts, type }) =>
  html`<${Action}
    accounts=${accounts}
    label="Send a code"
    onAct=${() =>
      accounts.act({
        name: "Send a code",
        path: "/bp/user/send_email_verify_code",
        body: { email: accounts.values.email, platform: CLIENT, type },
        done: () => `Code sent to ${accounts.values.email}`,
      })}
  />`;

export function EmailCode({ accounts }) {
  const { email, email_code } = accounts.values;
  const body = { email_code: { email, verify_code: email_code } };
  return html`
    <${Step}>
      <${Field} accounts=${accounts} name="email" label="Email address" type="email" />
      <${Field} accounts=${accounts} name="email_code" label="Code" inputmode="numeric" />
      <div class="row actions">
        <${SendCode} accounts=${accounts} type="login_email" />
        <${Action} accounts=${accounts} primary label="Log in" onAct=${() => accounts.logIn(body)} />
      </div>
    <//>
    <${Result} accounts=${accounts} />
    <${Emails} accounts=${accounts} to=${email} code="email_code" />
  `;
}

export function OwnEmail({ accounts }) {
  const { email, email_code } = accounts.values;
  const reason = accounts.user ? "" : "Log in first";
  const change = (name, method, body, done, path = "") =>
    accounts.actAsUser({ name, method, path: `/bp/user/me/email${path}`, body, done });
  const action = (label, onAct, primary = false) =>
    html`<${Action} accounts=${accounts} label=${label} reason=${reason} onAct=${onAct} primary=${primary} />`;
  return html`
    <${Step}>
      <${Field} accounts=${accounts} name="email" label="Email address" type="email" />
      <${Field} accounts=${accounts} name="email_code" label="Code" inputmode="numeric" hint="Needed for Bind only." />
      <div class="row actions">
        <${SendCode} accounts=${accounts} type="login_email" />
        ${action(
          "Bind",
          () => change("Bind the address", "POST", { email, platform: CLIENT, verify_code: email_code }, () => `${email} is bound`),
          true,
        )}
      </div>
      <div class="row actions">
        ${action("Change", () => change("Change the address", "PUT", { email, platform: CLIENT }, () => `A link was sent to ${email}`))}
        ${action("Unbind", () => change("Unbind the address", "DELETE", undefined, () => "The user has no address"))}
        ${action("Resend the link", () =>
          change("Send the link", "POST", { platform: CLIENT }, () => "A link was sent", "/send_verify_code"),
        )}
        ${action("Check verification", () =>
          change("Check verification", "GET", undefined, ({ verify_result }) => `The address is ${verify_result.verified ? "" : "not "}verified`, "/verify_result"),
        )}
      </div>
    <//>
    <${Result} accounts=${accounts} />
    <${Emails} accounts=${accounts} to=${email} code="email_code" />
  `;
}
