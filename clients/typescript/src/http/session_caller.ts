// The requests of a signed-in user. A session that has ended is renewed once, and the request is sent again.

import type { BpAuthView, LoginReply, UserView } from "../api.js";
import { SIGN_HEADER, signRequest, type SignedRequest } from "../crypto/signatures.js";
import { NotUnderstood, ParleyError } from "../errors.js";
import type { Backoff } from "./backoff.js";
import { contentOf } from "./calls.js";
import { jsonBody, type ApiRequest, type Caller, type Transport } from "./transport.js";
import type { ResponseLike } from "./web.js";

const SESSION_HEADER = "X-Service-Session-Token";

/** What a client keeps to remain signed in. It is as secret as a password. */
export interface Session {
  uid: string;
  token: string;
  /** Signs in once more without the user, after a sign-in at a third party, until it expires. */
  bpAuth: BpAuthView | null;
}

/** Keeps the session between visits. The functions may be asynchronous. */
export interface SessionStore {
  load(): Session | null | Promise<Session | null>;
  save(session: Session | null): void | Promise<void>;
}

export interface SessionOptions {
  signKey: string | null;
  session: Session | null;
  store: SessionStore | null;
  canUploadLive: boolean;
  backoff: Backoff;
}

export class SessionCaller implements Caller {
  readonly canUploadLive: boolean;
  readonly backoff: Backoff;
  /** Sends requests that need no session, such as logins. */
  readonly signedOut: Caller;
  /** Sends requests that do not renew the session. */
  readonly withoutRenewal: Caller;
  /** Makes a new session. By default, by the token of the last sign-in. */
  signInAgain: () => Promise<unknown> = () => this.#signInWithToken();
  readonly #transport: Transport;
  readonly #options: SessionOptions;
  #session: Session | null;
  #loaded: Promise<void> | null = null;
  #renewal: Promise<boolean> | null = null;

  constructor(transport: Transport, options: SessionOptions) {
    const { canUploadLive, backoff } = options;
    this.#transport = transport;
    this.#options = options;
    this.#session = options.session;
    this.canUploadLive = canUploadLive;
    this.backoff = backoff;
    const common = { canUploadLive, backoff };
    this.signedOut = { ...common, call: (request) => this.#send(request, null) };
    this.withoutRenewal = { ...common, call: async (request) => this.#send(request, await this.session()) };
  }

  /** The session, which is read from the store when it is first needed. */
  async session(): Promise<Session | null> {
    this.#loaded ??= this.#load();
    await this.#loaded;
    return this.#session;
  }

  async keep(session: Session | null): Promise<void> {
    this.#loaded = Promise.resolve();
    this.#session = session;
    await this.#options.store?.save(session);
  }

  /** Keep the session of the response to a login or a sign-up. Return the user. */
  async enter({ user, bp_auth }: LoginReply): Promise<UserView> {
    if (!user?.session) throw new NotUnderstood("the response to a login has no session");
    await this.keep({ uid: user.uid, token: user.session.session_token, bpAuth: bp_auth ?? null });
    return user;
  }

  async call(request: ApiRequest): Promise<ResponseLike> {
    const used = await this.session();
    try {
      return await this.#send(request, used);
    } catch (error) {
      if (!(error instanceof ParleyError) || error.errorType !== "account.invalid_session") throw error;
      const renewed = this.#session !== null && this.#session.token !== used?.token; // by another call
      if (!renewed && !(await this.renew())) throw error;
    }
    return this.#send(request, this.#session);
  }

  /** Make a new session. Return whether that was possible. Calls at the same time share one renewal. */
  renew(): Promise<boolean> {
    this.#renewal ??= this.#renew().finally(() => (this.#renewal = null));
    return this.#renewal;
  }

  async #renew(): Promise<boolean> {
    const before = await this.session();
    const stored = (await this.#options.store?.load()) ?? null;
    if (stored !== null && stored.token !== before?.token) this.#session = stored; // Another client has renewed it.
    else await this.signInAgain();
    return this.#session !== null && this.#session.token !== before?.token;
  }

  async #signInWithToken(): Promise<void> {
    const session = this.#session;
    const bpAuth = session?.bpAuth;
    if (!session || !bpAuth || bpAuth.expire_at_ms <= Date.now()) return;
    const body = jsonBody({ bp_auth_token: bpAuth.bp_auth_token });
    try {
      const response = await this.signedOut.call({ method: "POST", path: "/bp/user/login", body });
      await this.enter(await contentOf<LoginReply>(response));
    } catch (error) {
      const refused = error instanceof ParleyError && !error.retryable;
      if (refused) await this.keep({ ...session, bpAuth: null }); // It can be used once.
      throw error;
    }
  }

  async #load(): Promise<void> {
    this.#session ??= (await this.#options.store?.load()) ?? null;
  }

  #send(request: ApiRequest, session: Session | null): Promise<ResponseLike> {
    const { signKey } = this.#options;
    return this.#transport.send(request, (signed: SignedRequest) => ({
      ...(session && { [SESSION_HEADER]: session.token }),
      ...(signKey !== null && { [SIGN_HEADER]: signRequest(signKey, signed) }),
    }));
  }
}
