// The current user: its name, its ways to log in, and its profiles at platforms.

import { html } from "../vendor/preact.js";
import { Action } from "./fields.js";
import { ENTRIES, titleOf } from "./platforms.js";

/** `children`: the links to what the user may change. */
export function CurrentUser({ accounts, children }) {
  const { user } = accounts;
  if (!user) {
    return html`<section class="user" aria-label="Current user">
      <span class="nobody" aria-hidden="true"></span>
      <p class="who"><strong>Not logged in</strong> <small>Choose a platform, and who signs in there.</small></p>
      ${children}
    </section>`;
  }
  const profile = user.social_accounts.find((one) => one.social_profile)?.social_profile;
  const name = user.name || profile?.user_name || user.email?.email_address || user.phone?.phone_number;
  return html`<section class="user" aria-label="Current user">
    ${profile?.avatar
      ? html`<img src=${profile.avatar} alt=${`Picture of ${profile.user_name}`} width="40" height="40" />`
      : html`<span class="nobody" aria-hidden="true">${name?.replace("+", "").slice(0, 1) ?? "?"}</span>`}
    <p class="who">
      <strong>${name ?? "User without a name"}</strong>
      <small>${user.uid}</small>
    </p>
    <ul class="ways" aria-label="Ways to log in">
      ${user.social_accounts.map(
        (one) => html`<li key=${`${one.platform} ${one.id}`}>
          <span title=${`${one.platform} ${one.id}`}>${listedTitle(accounts, one.platform)}</span>
          <button
            type="button"
            class="remove"
            aria-label=${`Unbind ${listedTitle(accounts, one.platform)}`}
            title="Unbind"
            onClick=${() => accounts.unbind(one)}
          >
            ×
          </button>
        </li>`,
      )}
      ${user.email && html`<li><span>${user.email.email_address}${user.email.verified ? "" : " (not verified)"}</span></li>`}
      ${user.phone && html`<li><span>${user.phone.phone_number}</span></li>`}
    </ul>
    ${children}
    <div class="row">
      <${Action} accounts=${accounts} label="Refresh user" onAct=${() => accounts.readUser({ aside: false })} />
      <${Action} accounts=${accounts} label="Log out" onAct=${() => accounts.logOut()} />
    </div>
  </section>`;
}

/** Return the name of a provider in lists of all of them. It has the id if two platforms have the same name. */
export function listedTitle(accounts, id) {
  const title = providerTitle(accounts, id);
  const isShared = ENTRIES.some((other) => other.id !== id && providerTitle(accounts, other.id) === title);
  return isShared ? `${title} (${id})` : title;
}

/** Return the name of the provider that the app has for a platform. */
export const providerTitle = (accounts, id) => {
  const title = titleOf(id);
  const emulated = accounts.platforms[id]?.title;
  return !emulated || title.startsWith(emulated) ? title : emulated;
};
