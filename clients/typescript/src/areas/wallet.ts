// Subscriptions and orders that are paid with the wallet platform. The user approves them at `approve_link_href`.

import type { NewOrder, NewSubscription, OrderReply, OrderWithAssets, SubscriptionReply } from "../api.js";
import { get, sendOnce } from "../http/calls.js";
import type { Caller } from "../http/transport.js";
import { encoded } from "../http/urls.js";

const SUBSCRIPTIONS = "/bp/asset/walletpay_sub";
const ORDERS = "/bp/asset/walletpay";

export class Wallet {
  constructor(private readonly caller: Caller) {}

  subscribe(subscription: NewSubscription): Promise<SubscriptionReply> {
    return sendOnce(this.caller, "POST", SUBSCRIPTIONS, subscription);
  }

  /** Read a subscription from the platform, and grant what was paid. */
  syncSubscription(subscriptionId: string): Promise<SubscriptionReply> {
    return get(this.caller, `${SUBSCRIPTIONS}/${encoded(subscriptionId)}/sync`);
  }

  /** Read a subscription, with its next billing. Grants nothing. */
  fetchSubscription(subscriptionId: string): Promise<SubscriptionReply> {
    return get(this.caller, `${SUBSCRIPTIONS}/${encoded(subscriptionId)}/fetch`);
  }

  /** Begin the change to another plan. After the user has approved it, call `syncUpgrade`. */
  upgrade(subscriptionId: string, newBpProductId: string): Promise<SubscriptionReply> {
    const body = { new_bp_product_id: newBpProductId };
    return sendOnce(this.caller, "POST", `${SUBSCRIPTIONS}/${encoded(subscriptionId)}/upgrade`, body);
  }

  syncUpgrade(subscriptionId: string): Promise<SubscriptionReply> {
    return get(this.caller, `${SUBSCRIPTIONS}/${encoded(subscriptionId)}/sync_upgrade`);
  }

  createOrder(order: NewOrder): Promise<OrderReply> {
    return sendOnce(this.caller, "POST", `${ORDERS}/create`, order);
  }

  /** Take the payment of an order that the user has approved. */
  captureOrder(orderId: string): Promise<OrderReply> {
    return sendOnce(this.caller, "POST", `${ORDERS}/capture`, { order_id: orderId });
  }

  /** Read an order from the platform, and grant what was paid. */
  syncOrder(orderId: string): Promise<OrderWithAssets> {
    return get(this.caller, `${ORDERS}/sync/${encoded(orderId)}`);
  }

  /** Read an order. Grants nothing. */
  fetchOrder(orderId: string): Promise<OrderWithAssets> {
    return get(this.caller, `${ORDERS}/${encoded(orderId)}/fetch`);
  }
}
