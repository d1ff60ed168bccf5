// The account of a user: codes by email and phone, passwords, bound identities, sessions, deactivation.

import type {
  BindReply,
  DetectReply,
  ListedSessionView,
  MailDelay,
  ProfilesReply,
  PublicSocialProfile,
  SessionList,
  SocialAccount,
  SocialAccountReply,
  SocialNetworkInfo,
  VerifyResultReply,
} from "../api.js";
import type { DeviceFields, SignInInfo, SignInPlatform } from "../accounts/sign_in.js";
import { get, send } from "../http/calls.js";
import type { Caller } from "../http/transport.js";
import { segment } from "../http/urls.js";

const ME = "/bp/user/me";

/** Where the user is, which an email may depend on. */
export type Website = "website" | "ios" | "android";

export interface EmailCodeOptions {
  platform: Website;
  /** By default `login_email`. */
  type?: "login_email" | "sign_up_email" | undefined;
  customVariables?: Record<string, unknown> | undefined;
}

/** What the user's client and the app's server can do. */
export class UserAccount {
  constructor(protected readonly caller: Caller) {}

  /** Bind an identity at a third party. If it belongs to another user, the error's `bpAuth` signs in that user. */
  async bind<P extends SignInPlatform>(
    platform: P,
    info: SignInInfo<P>,
    fields: DeviceFields = {},
  ): Promise<SocialAccount> {
    const body = { ...fields, [platform]: info };
    return (await send<BindReply>(this.caller, "POST", `${ME}/socialaccount`, body)).social_account;
  }

  async unbind(platform: string, id: string): Promise<void> {
    return send(this.caller, "DELETE", `${ME}/socialaccount/${segment(platform)}/${segment(id)}`);
  }

  /** Replace the token of an identity, which `social_network_a` supports. */
  async reauthorize(id: string, info: SocialNetworkInfo): Promise<SocialAccount> {
    const path = `${ME}/socialaccount/social_network_a/${segment(id)}`;
    return (await send<SocialAccountReply>(this.caller, "PUT", path, { social_network_a: info })).social_account;
  }

  async sessions(): Promise<ListedSessionView[]> {
    return (await get<SessionList>(this.caller, `${ME}/sessions`)).sessions;
  }

  async endSession(sessionId: string): Promise<void> {
    return send(this.caller, "DELETE", `${ME}/sessions/${segment(sessionId)}`);
  }

  /** Freeze the account until it is deactivated. Keep the session: no new one can be obtained. */
  deactivate(): Promise<void> {
    return send(this.caller, "POST", `${ME}/deactivate`, undefined, { repeatable: true });
  }

  recover(): Promise<void> {
    return send(this.caller, "POST", `${ME}/deactivate/recover`);
  }

  /** Deactivate the account now. */
  confirmDeactivation(): Promise<void> {
    return send(this.caller, "POST", `${ME}/deactivate/confirm`);
  }
}

/** What only the user's client can do besides. */
export class Account extends UserAccount {
  /** `signedOut` sends the calls that need no session. */
  constructor(
    caller: Caller,
    private readonly signedOut: Caller,
  ) {
    super(caller);
  }

  /** Send the code for `signIn("email_code", …)`, or for a sign-up. */
  sendEmailCode(
    email: string,
    { platform, type = "login_email", customVariables = {} }: EmailCodeOptions,
  ): Promise<void> {
    const body = { email, platform, type, custom_variables: customVariables };
    return send(this.signedOut, "POST", "/bp/user/send_email_verify_code", body);
  }

  /** Send the code for `signIn("phone", …)`. */
  sendPhoneCode(phoneNumber: string, { platform }: { platform?: Website | undefined } = {}): Promise<void> {
    return send(this.signedOut, "POST", "/bp/user/send_phone_verify_code", { phone_number: phoneNumber, platform });
  }

  async emailExists(email: string): Promise<boolean> {
    return (await send<DetectReply>(this.signedOut, "POST", "/bp/user/detect", { email })).email_data.exists;
  }

  /** Send an email with the `randomCode` of `resetPassword`, if there is an account. */
  forgotPassword(email: string, { platform }: { platform: Website }): Promise<void> {
    return send(this.signedOut, "POST", "/bp/user/email/forgot_password", { email, platform });
  }

  resetPassword(randomCode: string, password: string, { email }: { email?: string | undefined } = {}): Promise<void> {
    return send(this.signedOut, "POST", "/bp/user/email/reset_password", { random_code: randomCode, password, email });
  }

  /** Change the password. All other sessions of the user end. */
  changePassword(old: string, password: string): Promise<void> {
    return send(this.caller, "PUT", `${ME}/password`, { origin_password: old, password });
  }

  /** Bind an address. `next_mail_s` is given if the email that verifies it can only be sent later. */
  bindEmail(
    email: string,
    { platform, verifyCode }: { platform: Website; verifyCode?: string | undefined },
  ): Promise<MailDelay | undefined> {
    return send(this.caller, "POST", `${ME}/email`, { email, platform, verify_code: verifyCode });
  }

  changeEmail(email: string, { platform }: { platform: Website }): Promise<MailDelay | undefined> {
    return send(this.caller, "PUT", `${ME}/email`, { email, platform });
  }

  unbindEmail(): Promise<void> {
    return send(this.caller, "DELETE", `${ME}/email`);
  }

  async emailVerified(): Promise<boolean> {
    return (await get<VerifyResultReply>(this.caller, `${ME}/email/verify_result`)).verify_result.verified;
  }

  /** Send the link that verifies the address once more. */
  sendVerifyLink({ platform }: { platform: Website }): Promise<void> {
    return send(this.caller, "POST", `${ME}/email/send_verify_code`, { platform });
  }

  /** The profiles of the bound identities, which are fetched after a sign-in. */
  async profiles(): Promise<PublicSocialProfile[]> {
    return (await get<ProfilesReply>(this.caller, `${ME}/social_profiles`)).social_profiles;
  }
}
