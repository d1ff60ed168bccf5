// Cards: saving one, and subscriptions that are paid with it.

import type { CardSubscriptionBody, CardSubscriptionReply, NewSetupIntent, SetupIntentReply, SetupIntentView } from "../api.js";
import { get, sendOnce } from "../http/calls.js";
import type { Caller } from "../http/transport.js";
import { segment } from "../http/urls.js";

const SUBSCRIPTIONS = "/bp/asset/cardpay_sub";

export class Cards {
  constructor(private readonly caller: Caller) {}

  /** Begin to save a card. The app completes it with the `client_secret`, at the platform. */
  async createSetupIntent(intent: NewSetupIntent = {}): Promise<SetupIntentView> {
    const path = "/bp/asset/cardpay_setup_intent";
    return (await sendOnce<SetupIntentReply>(this.caller, "POST", path, intent)).cardpay_setup_intent;
  }

  /** Subscribe with a card that the user has saved, or with that of a confirmed setup intent. */
  subscribe(subscription: CardSubscriptionBody): Promise<CardSubscriptionReply> {
    return sendOnce(this.caller, "POST", SUBSCRIPTIONS, subscription);
  }

  /** Return a subscription as the platform has it, and grant what it has paid for. */
  async subscription(subscriptionId: string): Promise<CardSubscriptionReply> {
    return get(this.caller, `${SUBSCRIPTIONS}/${segment(subscriptionId)}`);
  }

  /** Cancel a subscription. It lasts until the end of the period that is paid. */
  async cancel(subscriptionId: string): Promise<CardSubscriptionReply> {
    return sendOnce(this.caller, "DELETE", `${SUBSCRIPTIONS}/${segment(subscriptionId)}`);
  }
}
