// The requests of a signed-in user. An expired session is renewed once, and the request is sent again.

import type { BpAuthView, LoginReply } from "../api.js";
import { SIGN_HEADER, signRequest, type SignedRequest } from "../crypto/signatures.js";
import { ParleyError } from "../errors.js";
import { jsonBody, type ApiRequest, type Caller, type Transport } from "./transport.js";

const SESSION_HEADER = "X-Service-Session-Token";

/** A user who is signed in on this device. */
export interface Session {
  uid: string;
  token: string;
  /** Signs the user in once more without a new proof, until it expires. */
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
  /** Called if the session has expired and no `bpAuth` can renew it. It signs the user in, and does nothing else. */
  onSessionExpired: (() => Promise<unknown>) | null;
  canUploadLive: boolean;
}

export class SessionCaller implements Caller {
  readonly canUploadLive: boolean;
  readonly #transport: Transport;
  readonly #options: SessionOptions;
  #session: Session | null;
  #loaded: Promise<void> | null = null;
  #renewal: Promise<boolean> | null = null;

  constructor(transport: Transport, options: SessionOptions) {
    this.#transport = transport;
    this.#options = options;
    this.#session = options.session;
    this.canUploadLive = options.canUploadLive;
  }

  /** The session of this client, which is read from the store at the first call. */
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

  async call(request: ApiRequest): Promise<Response> {
    const used = await this.session();
    try {
      return await this.#send(request, used);
    } catch (error) {
      if (!(error instanceof ParleyError) || error.errorType !== "account.invalid_session") throw error;
      if (!(await this.#renewed(used))) throw error;
      return this.#send(request, this.#session);
    }
  }

  /** Send a request that needs no session, such as a login. */
  callWithoutSession(request: ApiRequest): Promise<Response> {
    return this.#send(request, null);
  }

  /** Log in with the token that an earlier login has returned. Return whether there was one. */
  async renewWithToken(): Promise<boolean> {
    const session = await this.session();
    const bpAuth = session?.bpAuth;
    if (!session || !bpAuth || bpAuth.expire_at_ms <= Date.now()) return false;
    await this.keep({ ...session, bpAuth: null }); // It can be used once.
    const body = jsonBody({ bp_auth_token: bpAuth.bp_auth_token });
    const response = await this.callWithoutSession({ method: "POST", path: "/bp/user/login", body });
    await this.keep(sessionOf((await response.json()) as LoginReply));
    return true;
  }

  async #load(): Promise<void> {
    this.#session ??= (await this.#options.store?.load()) ?? null;
  }

  #send(request: ApiRequest, session: Session | null): Promise<Response> {
    const { signKey } = this.#options;
    return this.#transport.send(request, (signed: SignedRequest) => ({
      ...(session && { [SESSION_HEADER]: session.token }),
      ...(signKey !== null && { [SIGN_HEADER]: signRequest(signKey, signed) }),
    }));
  }

  /** Renew the session that was used. Return whether there is a new one. Calls at the same time share one renewal. */
  async #renewed(used: Session | null): Promise<boolean> {
    if (this.#session !== null && this.#session.token !== used?.token) return true;
    this.#renewal ??= this.#renew().finally(() => (this.#renewal = null));
    return this.#renewal;
  }

  async #renew(): Promise<boolean> {
    const before = this.#session?.token;
    if (await this.renewWithToken().catch(ifRefused)) return true;
    await this.#options.onSessionExpired?.();
    return this.#session !== null && this.#session.token !== before;
  }
}

export function sessionOf({ user, bp_auth }: LoginReply): Session {
  return { uid: user.uid, token: user.session!.session_token, bpAuth: bp_auth ?? null };
}

/** Treat a refused token as a missing one: it was used or revoked. */
function ifRefused(error: unknown): boolean {
  if (error instanceof ParleyError && !error.retryable) return false;
  throw error;
}
