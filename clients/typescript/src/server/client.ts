// The client of an app server, which acts for the users of its app.

import type { BatchReply, DetectReply, LoginReply, PublicSocialProfile, SignupReply, UserView } from "../api.js";
import type { DeviceFields, SignInInfo, SignInPlatform, SignUpInfo, SignUpPlatform } from "../accounts/sign_in.js";
import { backoffOf, type Backoff, type BackoffOptions } from "../http/backoff.js";
import { get, send } from "../http/calls.js";
import { Transport, type ApiRequest, type Caller } from "../http/transport.js";
import { segment } from "../http/urls.js";
import type { Fetch } from "../http/web.js";
import { serverToken, type ServerKey } from "./tokens.js";
import { ServerUser } from "./user.js";

const AUTH_HEADER = "X-Service-Auth-Token";

export interface ServerOptions {
  /** `server_audience` of the config `auth`, if it is set. */
  audience?: string | undefined;
  backoff?: BackoffOptions | undefined;
  fetch?: Fetch | undefined;
}

/** A client of an app server. Each request has a new token, which is valid for one call. */
export class ServerClient {
  readonly #transport: Transport;
  readonly #token: (userId: string | null) => string;
  readonly #backoff: Backoff;
  readonly #app: Caller;

  constructor(baseUrl: string, appId: string, key: ServerKey, options: ServerOptions = {}) {
    const { audience } = options;
    this.#transport = new Transport(baseUrl, appId, options.fetch);
    this.#token = (userId) => serverToken(key, appId, { userId, ...(audience !== undefined && { audience }) });
    this.#backoff = backoffOf(options.backoff);
    this.#app = this.#callerOf((path) => path, null);
  }

  /** What can be done for a user. */
  user(userId: string): ServerUser {
    return new ServerUser(this.#callerOf((path) => serverPath(path, userId), userId));
  }

  /** Sign in a user, whose `session` can be given to the user's client. */
  async signIn<P extends SignInPlatform>(
    platform: P,
    info: SignInInfo<P>,
    fields: DeviceFields = {},
  ): Promise<UserView> {
    return (await send<LoginReply>(this.#app, "POST", "/bp/server/user/login", { ...fields, [platform]: info })).user;
  }

  async signUp<P extends SignUpPlatform>(
    platform: P,
    info: SignUpInfo<P>,
    fields: DeviceFields = {},
  ): Promise<UserView> {
    return (await send<SignupReply>(this.#app, "POST", "/bp/server/user/signup", { ...fields, [platform]: info })).user;
  }

  async emailExists(email: string): Promise<boolean> {
    return (await send<DetectReply>(this.#app, "POST", "/bp/server/user/detect", { email })).email_data.exists;
  }

  /** The profiles of up to 100 users at third-party platforms, by the id of the user. */
  async profiles(userIds: readonly [string, ...string[]]): Promise<Record<string, PublicSocialProfile[]>> {
    const path = `/bp/server/user/${segment(userIds[0])}/social_profile`;
    return (await get<BatchReply>(this.#app, path, { user_ids: userIds.join(",") })).social_profile;
  }

  #callerOf(pathOf: (path: string) => string, userId: string | null): Caller {
    const call = (request: ApiRequest) =>
      this.#transport.send({ ...request, path: pathOf(request.path) }, () => ({ [AUTH_HEADER]: this.#token(userId) }));
    return { canUploadLive: true, backoff: this.#backoff, call };
  }
}

/** Return the path by which an app server makes a call of a client. */
function serverPath(path: string, userId: string): string {
  return `/bp/server/user/${segment(userId)}${path.replace(/^\/bp(?:\/user\/me(?=\/|$))?/, "")}`;
}
