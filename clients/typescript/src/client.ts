// The client of an app: sign-in, and everything that a signed-in user does.

import type { LoginReply, SignupReply } from "./api.js";
import type { DeviceFields, SignInInfo, SignInPlatform, SignUpInfo, SignUpPlatform } from "./accounts/sign_in.js";
import { contentOf, send } from "./http/calls.js";
import { canUploadLive } from "./http/live.js";
import { SessionCaller, sessionOf, type Session, type SessionStore } from "./http/session_caller.js";
import { jsonBody, Transport, type Fetch } from "./http/transport.js";
import { BaseUrl } from "./http/urls.js";
import { Turn, type ConverseOptions } from "./streams/turn.js";

export interface ClientOptions {
  /** Key of the app for request signatures. Production servers require them. */
  signKey?: string | null;
  /** A session from an earlier visit. */
  session?: Session | null;
  /** Where the session is kept between visits. */
  store?: SessionStore | null;
  /**
   * Called if the session has expired. It signs the user in again, and makes no other calls. Without it, the session is
   * renewed only if the last sign-in has returned a token for that, which is valid for some minutes.
   */
  onSessionExpired?: ((client: ParleyClient) => Promise<unknown>) | null;
  /** Whether audio can be sent while it is recorded. By default, it is where that is known to work. */
  liveUpload?: boolean;
  /** By default, that of the environment. In React Native, give that of `expo/fetch`, which reads streams. */
  fetch?: Fetch;
}

export class ParleyClient {
  readonly #caller: SessionCaller;

  constructor(baseUrl: string, appId: string, options: ClientOptions = {}) {
    const { onSessionExpired } = options;
    this.#caller = new SessionCaller(new Transport(baseUrl, appId, options.fetch), {
      signKey: options.signKey ?? null,
      session: options.session ?? null,
      store: options.store ?? null,
      onSessionExpired: onSessionExpired ? () => onSessionExpired(this) : null,
      canUploadLive: options.liveUpload ?? canUploadLive(new BaseUrl(baseUrl).origin),
    });
  }

  /** The session of the user who is signed in, to be kept as a secret. */
  session(): Promise<Session | null> {
    return this.#caller.session();
  }

  /** Sign in. `info` is what the platform needs, such as `{id}` for `device`. */
  async signIn<P extends SignInPlatform>(platform: P, info: SignInInfo<P>, fields: DeviceFields = {}): Promise<LoginReply> {
    return this.#enter<LoginReply>("/bp/user/login", { ...fields, [platform]: info });
  }

  /** Create an account with a password, and sign in. */
  async signUp<P extends SignUpPlatform>(platform: P, info: SignUpInfo<P>, fields: DeviceFields = {}): Promise<SignupReply> {
    return this.#enter<SignupReply>("/bp/user/signup", { ...fields, [platform]: info });
  }

  /** Begin a new session with the token of the last sign-in. Return whether there was one that is still valid. */
  refreshSession(): Promise<boolean> {
    return this.#caller.renewWithToken();
  }

  async signOut(): Promise<void> {
    await send(this.#caller, "POST", "/bp/user/logout");
    await this.#caller.keep(null);
  }

  /** Say something by text or voice, and get the answer. */
  converse(options: ConverseOptions): Turn {
    return new Turn(this.#caller, options);
  }

  async #enter<T extends LoginReply>(path: string, body: unknown): Promise<T> {
    const response = await this.#caller.callWithoutSession({ method: "POST", path, body: jsonBody(body) });
    const reply = await contentOf<T>(response);
    await this.#caller.keep(sessionOf(reply));
    return reply;
  }
}
