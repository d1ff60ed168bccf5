// The account of the user who is signed in: linked identities, password, sessions, and leaving.

import type { BindReply, ProfilesReply, PublicSocialProfile, ReauthorizeBody, SessionList, SocialAccountReply } from "../api.js";
import type { DeviceFields, SignInInfo, SignInPlatform } from "../accounts/sign_in.js";
import { get, send } from "../http/calls.js";
import type { Caller } from "../http/transport.js";
import { encoded } from "../http/urls.js";

export class Account {
  constructor(private readonly caller: Caller) {}

  /** Link an identity. If it belongs to another user, the error has a `bpAuth` that signs in as that user. */
  bind<P extends SignInPlatform>(platform: P, info: SignInInfo<P>, fields: DeviceFields = {}): Promise<BindReply> {
    return send(this.caller, "POST", "/bp/user/me/socialaccount", { ...fields, [platform]: info });
  }

  unbind(platform: string, id: string): Promise<void> {
    return send(this.caller, "DELETE", `/bp/user/me/socialaccount/${encoded(platform)}/${encoded(id)}`);
  }

  reauthorize(platform: string, id: string, body: ReauthorizeBody): Promise<SocialAccountReply> {
    return send(this.caller, "PUT", `/bp/user/me/socialaccount/${encoded(platform)}/${encoded(id)}`, body);
  }

  /** The profiles at third-party platforms, which are fetched some time after a sign-in. */
  async profiles(): Promise<PublicSocialProfile[]> {
    return (await get<ProfilesReply>(this.caller, "/bp/user/me/social_profiles")).social_profiles;
  }

  changePassword(originPassword: string, password: string): Promise<void> {
    return send(this.caller, "PUT", "/bp/user/me/password", { origin_password: originPassword, password });
  }

  sessions(): Promise<SessionList> {
    return get(this.caller, "/bp/user/me/sessions");
  }

  endSession(sessionId: string): Promise<void> {
    return send(this.caller, "DELETE", `/bp/user/me/sessions/${encoded(sessionId)}`);
  }

  /** Freeze the account, which is deleted some days later. Keep the session: only it can recover the account. */
  deactivate(): Promise<void> {
    return send(this.caller, "POST", "/bp/user/me/deactivate");
  }

  /** Delete the frozen account now. */
  confirmDeactivation(): Promise<void> {
    return send(this.caller, "POST", "/bp/user/me/deactivate/confirm");
  }

  recover(): Promise<void> {
    return send(this.caller, "POST", "/bp/user/me/deactivate/recover");
  }
}
