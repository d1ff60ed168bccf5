// Orders and subscriptions that users pay with a wallet.

import type { OrderReply, OrderWithAssets, SubscriptionReply, WalletOrderView } from "../api.js";
import { get, sendOnce } from "../http/calls.js";
import type { Caller } from "../http/transport.js";
import { segment } from "../http/urls.js";

const ORDERS = "/bp/asset/walletpay";
const SUBSCRIPTIONS = "/bp/asset/walletpay_sub";

export interface SubscribeOptions {
  /** Two letters, such as `DE`. */
  countryCode?: string | undefined;
  /** Where the platform sends the user after the approval, if not to the address in the config. */
  returnUrl?: string | undefined;
  cancelUrl?: string | undefined;
}

/** Create one, send the user to its `approve_link_href`, then capture the order or sync the subscription. */
export class Wallet {
  constructor(private readonly caller: Caller) {}

  async createOrder(
    productId: string,
    { countryCode }: { countryCode?: string | undefined } = {},
  ): Promise<WalletOrderView> {
    const body = { product_id: productId, country_code: countryCode };
    return (await sendOnce<OrderReply>(this.caller, "POST", `${ORDERS}/create`, body)).walletpay_order;
  }

  /** Take the payment that the user has approved. */
  async captureOrder(orderId: string): Promise<WalletOrderView> {
    const body = { order_id: orderId };
    return (await sendOnce<OrderReply>(this.caller, "POST", `${ORDERS}/capture`, body)).walletpay_order;
  }

  /** Return an order as the platform has it, and grant what it has paid for. */
  async syncOrder(orderId: string): Promise<OrderWithAssets> {
    return get(this.caller, `${ORDERS}/sync/${segment(orderId)}`);
  }

  /** Return an order as the platform has it, without granting anything. */
  async fetchOrder(orderId: string): Promise<OrderWithAssets> {
    return get(this.caller, `${ORDERS}/${segment(orderId)}/fetch`);
  }

  subscribe(
    productId: string,
    { countryCode, returnUrl, cancelUrl }: SubscribeOptions = {},
  ): Promise<SubscriptionReply> {
    const urls = { return_url: returnUrl, cancel_url: cancelUrl };
    const body = { product_id: productId, country_code: countryCode, ...urls };
    return sendOnce(this.caller, "POST", SUBSCRIPTIONS, body);
  }

  /** Return a subscription as the platform has it, and grant what it has paid for. */
  async syncSubscription(subscriptionId: string): Promise<SubscriptionReply> {
    return get(this.caller, `${SUBSCRIPTIONS}/${segment(subscriptionId)}/sync`);
  }

  /** Return a subscription with its next payment, without granting anything. */
  async fetchSubscription(subscriptionId: string): Promise<SubscriptionReply> {
    return get(this.caller, `${SUBSCRIPTIONS}/${segment(subscriptionId)}/fetch`);
  }

  /** Begin an upgrade. Its subscription has another id. */
  async upgrade(subscriptionId: string, newProductId: string): Promise<SubscriptionReply> {
    const body = { new_bp_product_id: newProductId };
    return sendOnce(this.caller, "POST", `${SUBSCRIPTIONS}/${segment(subscriptionId)}/upgrade`, body);
  }

  /** Return the subscription of an upgrade after its approval, and grant what it has paid for. */
  async syncUpgrade(subscriptionId: string): Promise<SubscriptionReply> {
    return get(this.caller, `${SUBSCRIPTIONS}/${segment(subscriptionId)}/sync_upgrade`);
  }
}
