// Cards: saving one, and subscriptions that are paid with it.

import type { CardSubscriptionBody, CardSubscriptionReply, NewSetupIntent, SetupIntentReply } from "../api.js";
import { get, sendOnce } from "../http/calls.js";
import type { Caller } from "../http/transport.js";
import { encoded } from "../http/urls.js";

const SUBSCRIPTIONS = "/bp/asset/cardpay_sub";

export class Cards {
  constructor(private readonly caller: Caller) {}

  createSetupIntent(intent: NewSetupIntent = {}): Promise<SetupIntentReply> {
    return sendOnce(this.caller, "POST", "/bp/asset/cardpay_setup_intent", intent);
  }

  subscribe(subscription: CardSubscriptionBody): Promise<CardSubscriptionReply> {
    return sendOnce(this.caller, "POST", SUBSCRIPTIONS, subscription);
  }

  subscription(subscriptionId: string): Promise<CardSubscriptionReply> {
    return get(this.caller, `${SUBSCRIPTIONS}/${encoded(subscriptionId)}`);
  }

  cancel(subscriptionId: string): Promise<CardSubscriptionReply> {
    return sendOnce(this.caller, "DELETE", `${SUBSCRIPTIONS}/${encoded(subscriptionId)}`);
  }
}
