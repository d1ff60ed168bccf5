// The user's email address, and the codes and links that are sent to it.

import type {
  BindEmail,
  DetectReply,
  EmailCodeRequest,
  ForgotPassword,
  MailDelay,
  NewAddress,
  PhoneCodeRequest,
  ResetPassword,
  VerifyResult,
  VerifyResultReply,
} from "../api.js";
import { get, send } from "../http/calls.js";
import type { Caller } from "../http/transport.js";

export class Email {
  /** `signedOut` sends the calls that need no session. */
  constructor(
    private readonly caller: Caller,
    private readonly signedOut: Caller,
  ) {}

  /** Whether somebody has signed up with this address. */
  async exists(email: string): Promise<boolean> {
    return (await send<DetectReply>(this.signedOut, "POST", "/bp/user/detect", { email })).email_data.exists;
  }

  /** Send the code for a sign-up, or for a login with `email_code`. */
  sendCode(request: EmailCodeRequest): Promise<void> {
    return send(this.signedOut, "POST", "/bp/user/send_email_verify_code", request);
  }

  /** Send the code for a login with `phone`. */
  sendPhoneCode(request: PhoneCodeRequest): Promise<void> {
    return send(this.signedOut, "POST", "/bp/user/send_phone_verify_code", request);
  }

  forgotPassword(request: ForgotPassword): Promise<void> {
    return send(this.signedOut, "POST", "/bp/user/email/forgot_password", request);
  }

  resetPassword(reset: ResetPassword): Promise<void> {
    return send(this.signedOut, "POST", "/bp/user/email/reset_password", reset);
  }

  bind(address: BindEmail): Promise<MailDelay | undefined> {
    return send(this.caller, "POST", "/bp/user/me/email", address);
  }

  change(address: NewAddress): Promise<MailDelay | undefined> {
    return send(this.caller, "PUT", "/bp/user/me/email", address);
  }

  unbind(): Promise<void> {
    return send(this.caller, "DELETE", "/bp/user/me/email");
  }

  async verifyResult(): Promise<VerifyResult> {
    return (await get<VerifyResultReply>(this.caller, "/bp/user/me/email/verify_result")).verify_result;
  }

  /** Send the link that verifies the address once more. `platform`: website, ios or android. */
  sendVerifyCode(platform: "website" | "ios" | "android"): Promise<void> {
    return send(this.caller, "POST", "/bp/user/me/email/send_verify_code", { platform });
  }
}
