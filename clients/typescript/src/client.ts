// The client of an app: sign-in, and everything that a signed-in user does.

import type { LoginReply, UserView } from "./api.js";
import type { DeviceFields, SignInInfo, SignInPlatform, SignUpInfo, SignUpPlatform } from "./accounts/sign_in.js";
import { Account } from "./areas/account.js";
import { Cards } from "./areas/cards.js";
import { Sharing } from "./areas/sharing.js";
import { Wallet } from "./areas/wallet.js";
import { ParleyError } from "./errors.js";
import { backoffOf, type BackoffOptions } from "./http/backoff.js";
import { contentOf, send } from "./http/calls.js";
import { canUploadLive } from "./http/live.js";
import { SessionCaller, type Session, type SessionStore } from "./http/session_caller.js";
import { jsonBody, Transport } from "./http/transport.js";
import { BaseUrl } from "./http/urls.js";
import type { Fetch } from "./http/web.js";
import { User } from "./user.js";

export interface ClientOptions {
  /** One of the app's `sign_keys`, which production requires. */
  signKey?: string | null | undefined;
  /** A session from an earlier visit. */
  session?: Session | null | undefined;
  /** Where the session is kept between visits. */
  store?: SessionStore | null | undefined;
  /**
   * Called if the session has ended. It signs the user in again, and makes no other calls. Without it, the client uses
   * the token of a sign-in at a third party. The request is then repeated once.
   */
  onSessionExpired?: ((client: ParleyClient) => Promise<unknown>) | null | undefined;
  /** Whether audio can be sent while it is recorded. By default, it is where that is known to work. */
  liveUpload?: boolean | undefined;
  /** When requests are repeated, if not by default. */
  backoff?: BackoffOptions | undefined;
  /** By default, that of the environment. In React Native, give that of `expo/fetch`, which reads streams. */
  fetch?: Fetch | undefined;
}

/** A client of one user of an app. */
export class ParleyClient extends User {
  override readonly account: Account;
  readonly wallet: Wallet;
  readonly cards: Cards;
  readonly sharing: Sharing;
  readonly #caller: SessionCaller;

  constructor(baseUrl: string, appId = "default", options: ClientOptions = {}) {
    const caller = new SessionCaller(new Transport(baseUrl, appId, options.fetch), {
      signKey: options.signKey ?? null,
      session: options.session ?? null,
      store: options.store ?? null,
      backoff: backoffOf(options.backoff),
      canUploadLive: options.liveUpload ?? canUploadLive(new BaseUrl(baseUrl).origin),
    });
    super(caller);
    this.#caller = caller;
    this.account = new Account(caller, caller.signedOut);
    this.wallet = new Wallet(caller);
    this.cards = new Cards(caller);
    this.sharing = new Sharing(caller);
    const { onSessionExpired } = options;
    if (onSessionExpired) caller.signInAgain = () => onSessionExpired(this);
  }

  /** The session, to be kept as secret as a password. Null: the user is not signed in. */
  session(): Promise<Session | null> {
    return this.#caller.session();
  }

  /** Sign in, and return the user. `info` is what the platform needs, such as `{id}` for `device`. */
  signIn<P extends SignInPlatform>(platform: P, info: SignInInfo<P>, fields: DeviceFields = {}): Promise<UserView> {
    return this.#enter("/bp/user/login", { ...fields, [platform]: info });
  }

  /** Make an account with `name_password` or `email_password`, sign in, and return the user. */
  signUp<P extends SignUpPlatform>(platform: P, info: SignUpInfo<P>, fields: DeviceFields = {}): Promise<UserView> {
    return this.#enter("/bp/user/signup", { ...fields, [platform]: info });
  }

  /** Make a new session as if this one had ended. Return whether that was possible. */
  refreshSession(): Promise<boolean> {
    return this.#caller.renew();
  }

  /** End the session, on the server and here. */
  async signOut(): Promise<void> {
    try {
      await send(this.#caller.withoutRenewal, "POST", "/bp/user/logout");
    } catch (error) {
      if (!(error instanceof ParleyError) || error.errorType !== "account.invalid_session") throw error;
    }
    await this.#caller.keep(null);
  }

  async #enter(path: string, body: unknown): Promise<UserView> {
    const response = await this.#caller.signedOut.call({ method: "POST", path, body: jsonBody(body) });
    return this.#caller.enter(await contentOf<LoginReply>(response));
  }
}
