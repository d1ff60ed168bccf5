// The page of a provider in the sandbox: one chooses who signs in, and how the sign-in fails.

import { html } from "../vendor/preact.js";
import { newSubject } from "./accounts.js";
import { Action, Field, Result } from "./fields.js";

const SOMEBODY_ELSE = "else";
const FAULTS = {
  refused: (title) => `${title} rejects the proof`,
  expired: () => "The proof has expired",
  other_app: () => "The proof was issued to another app",
  unsigned: () => "The token is not signed",
  timeout: (title) => `${title} does not answer (5 s)`,
  server_error: (title) => `${title} answers with status 500`,
  unavailable: (title) => `${title} is overloaded`,
  rate_limited: (title) => `${title} reports too many requests`,
  redirect: (title) => `${title} redirects the call`,
};

export function Provider({ accounts, platform }) {
  const emulated = accounts.platforms[platform];
  if (!emulated) return html`<p>The sandbox does not emulate this platform.</p>`;
  if (emulated.problem) return html`<p>Nobody can sign in: ${emulated.problem}</p>`;
  const { title, faults } = emulated;
  const person = chosenPerson(accounts);
  const fault = accounts.values.fault in faults ? accounts.values.fault : "";
  const prove = () => accounts.prove(platform, { ...person, ...faults[fault] }, title);
  const withProof = (use) => async () => {
    const proven = await prove();
    if (proven) await use(proven.body, proven.more);
  };
  const linked = accounts.user?.social_accounts.find((one) => one.platform === platform);
  return html`
    <form onSubmit=${(event) => event.preventDefault()} aria-label=${`Sign in with ${title}`}>
      <${People} accounts=${accounts} emulated=${emulated} chosen=${person.subject} />
      <label class="field">
        <span>What happens</span>
        <select name="fault" value=${fault} onChange=${(event) => accounts.set("fault", event.currentTarget.value)}>
          <option value="">${title} confirms the person</option>
          ${Object.keys(faults).map(
            (name) => html`<option key=${name} value=${name}>${FAULTS[name]?.(title) ?? name}</option>`,
          )}
        </select>
      </label>
      <div class="row actions">
        <${Action} accounts=${accounts} primary label="Log in" onAct=${withProof((body, more) => accounts.logIn(body, more))} />
        <${Action}
          accounts=${accounts}
          label="Bind"
          reason=${accounts.user ? "" : "Log in first: a user binds identities"}
          onAct=${withProof((body, more) => accounts.bind(body, more))}
        />
        ${linked &&
        html`<${Action} accounts=${accounts} label="Unbind" onAct=${() => accounts.unbind(linked)} />`}
        ${linked &&
        platform === "social_network_a" &&
        html`<${Action}
          accounts=${accounts}
          label="Renew the token"
          onAct=${withProof((body, more) => accounts.renew(linked.id, body, more))}
        />`}
      </div>
    </form>
    ${!accounts.user && html`<p class="muted hint">Bind adds the identity to the current user. Log in first.</p>`}
    <${Result} accounts=${accounts} />
  `;
}

/** Return the login that "Log in" would send now, as an exchange without a response; null if there is none. */
export function nextLogin(accounts, platform) {
  const emulated = accounts.platforms[platform];
  if (!emulated || emulated.problem) return null;
  const body = { ...chosenPerson(accounts), ...emulated.faults[accounts.values.fault] };
  const proof = { path: `/dev/accounts/${platform}/_issue${accounts.query}`, body };
  return { name: "Log in", method: "POST", path: "/bp/user/login", headers: accounts.exchanges.headers({}), proof };
}

function People({ accounts, emulated: { title, verifies_email }, chosen }) {
  const { people, values } = accounts;
  const isElse = values.person === SOMEBODY_ELSE;
  return html`<fieldset class="people">
    <legend>Who signs in with ${title}?</legend>
    ${people.map(
      ({ subject, profile }) => html`<label key=${subject} class="person">
        <input
          type="radio"
          name="person"
          value=${subject}
          checked=${!isElse && subject === chosen}
          onChange=${() => accounts.set("person", subject)}
        />
        <img src=${profile.avatar} alt="" width="36" height="36" />
        <span><strong>${profile.name}</strong> <small>${subject}</small></span>
        ${verifies_email && html`<${Email} profile=${profile} />`}
      </label>`,
    )}
    <label class="person">
      <input
        type="radio"
        name="person"
        value=${SOMEBODY_ELSE}
        checked=${isElse}
        onChange=${() => accounts.set("person", SOMEBODY_ELSE)}
      />
      <span class="nobody" aria-hidden="true">+</span>
      <span><strong>Somebody else</strong> <small>An id${verifies_email ? ", a name and an address" : " and a name"} of your choice</small></span>
    </label>
    ${isElse && html`<${SomebodyElse} accounts=${accounts} hasEmail=${verifies_email} />`}
  </fieldset>`;
}

function Email({ profile: { email, email_verified } }) {
  return html`<span class="email">
    ${email} <em class=${email_verified ? "verified" : "unverified"}>${email_verified ? "verified" : "not verified"}</em>
  </span>`;
}

function SomebodyElse({ accounts, hasEmail }) {
  const { people, values } = accounts;
  return html`<div class="else">
    <div class="id">
      <${Field} accounts=${accounts} name="subject" label="Id" />
      <button type="button" class="quiet" onClick=${() => accounts.set("subject", newSubject())}>New id</button>
    </div>
    <${Field} accounts=${accounts} name="person_name" label="Name" />
    ${hasEmail && html`<${Field} accounts=${accounts} name="person_email" label="Email address" type="email" />`}
    <label class="field">
      <span>Picture</span>
      <select value=${values.person_picture} onChange=${(event) => accounts.set("person_picture", event.currentTarget.value)}>
        <option value="">None</option>
        ${people.map(({ profile }) => html`<option key=${profile.avatar} value=${profile.avatar}>${profile.name}'s picture</option>`)}
      </select>
    </label>
    ${hasEmail &&
    html`<label class="check">
      <input
        type="checkbox"
        checked=${values.person_verified}
        onChange=${(event) => accounts.set("person_verified", event.currentTarget.checked)}
      />
      <span>The address is verified</span>
    </label>`}
  </div>`;
}

/** Return the chosen person, as the sandbox takes it: `{subject, profile}`. */
function chosenPerson({ people, values }) {
  if (values.person !== SOMEBODY_ELSE) return people.find(({ subject }) => subject === values.person) ?? people[0];
  return {
    subject: values.subject,
    profile: {
      name: values.person_name,
      email: values.person_email,
      email_verified: values.person_verified,
      avatar: values.person_picture,
      gender: "",
    },
  };
}
