// Emails by the strategies of the app.

import type { NewMail } from "../api.js";
import { sendOnce } from "../http/calls.js";
import type { Caller } from "../http/transport.js";

export class Mail {
  constructor(private readonly caller: Caller) {}

  /** Send an email to the user's address, or to `email_to` if the strategy allows it. */
  send(mail: NewMail): Promise<void> {
    return sendOnce(this.caller, "POST", "/bp/user/me/mail_hub/send", mail);
  }
}
