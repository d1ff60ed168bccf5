// What only an app server does for a user: payments, withdrawals, and records.

import type {
  NewPaymentIntent,
  NewWithdrawal,
  PaymentIntentReply,
  PaymentIntentView,
  PaymentIntentWithAssets,
  ReceiptReply,
  WithdrawalReply,
  WithdrawalView,
} from "../api.js";
import { get, send, sendOnce } from "../http/calls.js";
import type { Caller } from "../http/transport.js";
import { segment } from "../http/urls.js";
import { User } from "../user.js";

// Paths of the client interface, from which those of app servers follow.
const INTENTS = "/bp/asset/cardpay_payment_intent";
const WITHDRAWALS = "/bp/withdraw/";
const ME = "/bp/user/me";

export type PaymentIntentOptions = Omit<NewPaymentIntent, "amonut" | "currency">;
export type WithdrawOptions = Omit<NewWithdrawal, "withdraw_id" | "cash_num" | "start_time"> & { startTime: Date };

/** The calls of an app's server for one user. */
export class ServerUser extends User {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    super(caller);
    this.#caller = caller;
  }

  /** Report that the user was active. */
  async recordActivity(): Promise<void> {
    await send(this.#caller, "POST", `${ME}/account/record_activity`, undefined, { repeatable: true });
  }

  /**
   * Begin a payment by card. The app completes it with the `client_secret`.
   *
   * `amount` is in minor units, such as cents.
   */
  async createPaymentIntent(
    amount: number,
    currency: string,
    options: PaymentIntentOptions = {},
  ): Promise<PaymentIntentView> {
    const body = { ...options, amonut: amount, currency }; // The interface spells it so.
    return (await sendOnce<PaymentIntentReply>(this.#caller, "POST", INTENTS, body)).cardpay_payment_intent;
  }

  /** Return a payment as the platform has it, and what the user has now. */
  async paymentIntent(
    intentId: string,
    { config }: { config?: string | undefined } = {},
  ): Promise<PaymentIntentWithAssets> {
    return get(this.#caller, `${INTENTS}/${segment(intentId)}`, { pay_platform_config_name: config });
  }

  /** Begin a payment to the user. `withdrawId` is unique in the app, so that nothing is paid twice. */
  async withdraw(
    withdrawId: string,
    cashNum: number,
    { startTime, ...options }: WithdrawOptions,
  ): Promise<WithdrawalView> {
    const body = { ...options, withdraw_id: withdrawId, cash_num: cashNum, start_time: startTime.toISOString() };
    return (await sendOnce<WithdrawalReply>(this.#caller, "POST", WITHDRAWALS, body)).withdraw;
  }

  /** Return a withdrawal, by its id of the app or of the server. */
  async withdrawal(withdrawId: string): Promise<WithdrawalView> {
    return (await get<WithdrawalReply>(this.#caller, WITHDRAWALS, { withdraw_id: withdrawId })).withdraw;
  }

  /** Return what was deleted of a user who has left, and what is kept. */
  erasureReceipt(): Promise<ReceiptReply> {
    return get(this.#caller, `${ME}/erasure_receipt`);
  }
}
