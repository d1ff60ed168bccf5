// What only an app server does for a user: payments, withdrawals, and records.

import type {
  NewPaymentIntent,
  NewWithdrawal,
  PaymentIntentReply,
  PaymentIntentWithAssets,
  ReceiptReply,
  WithdrawalReply,
} from "../api.js";
import { get, send, sendOnce } from "../http/calls.js";
import type { Caller } from "../http/transport.js";
import { encoded } from "../http/urls.js";
import { User } from "../user.js";

// The names of the client interface, which a server caller maps to its own.
const INTENTS = "/bp/asset/cardpay_payment_intent";
const WITHDRAWALS = "/bp/withdraw/";

export class ServerUser extends User {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    super(caller, caller);
    this.#caller = caller;
  }

  createPaymentIntent(intent: NewPaymentIntent): Promise<PaymentIntentReply> {
    return sendOnce(this.#caller, "POST", INTENTS, intent);
  }

  paymentIntent(intentId: string, { config }: { config?: string } = {}): Promise<PaymentIntentWithAssets> {
    return get(this.#caller, `${INTENTS}/${encoded(intentId)}`, { pay_platform_config_name: config });
  }

  /** Pay out. A repeat with the same `withdraw_id` pays nothing more. */
  withdraw(withdrawal: NewWithdrawal): Promise<WithdrawalReply> {
    return sendOnce(this.#caller, "POST", WITHDRAWALS, withdrawal);
  }

  /** The state of a withdrawal, by the id of the app or of the server. */
  withdrawal(withdrawId: string): Promise<WithdrawalReply> {
    return get(this.#caller, WITHDRAWALS, { withdraw_id: withdrawId });
  }

  /** Report that the user was active. */
  async recordActivity(): Promise<void> {
    await send(this.#caller, "POST", "/bp/user/me/account/record_activity");
  }

  /** What was deleted of a user who has left, and what is kept. */
  erasureReceipt(): Promise<ReceiptReply> {
    return get(this.#caller, "/bp/user/me/erasure_receipt");
  }
}
