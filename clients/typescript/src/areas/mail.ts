// Emails by the strategies of the app.

import { sendOnce } from "../http/calls.js";
import type { Caller } from "../http/transport.js";

export interface MailOptions {
  /** By default, the user's address. */
  emailTo?: string | undefined;
  customVariables?: Record<string, unknown> | undefined;
}

export class Mail {
  constructor(private readonly caller: Caller) {}

  /** Send the user an email by the strategy `name`. */
  async send(name: string, { emailTo, customVariables }: MailOptions = {}): Promise<void> {
    const body = { name, email_to: emailTo, custom_variables: customVariables };
    await sendOnce(this.caller, "POST", "/bp/user/me/mail_hub/send", body);
  }
}
