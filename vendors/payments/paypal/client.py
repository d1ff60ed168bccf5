"""PayPal's API: orders, subscriptions, refunds, payouts, and the webhooks that PayPal sends.

`key` is the idempotency key, which is stored before the call. Issues are those of `PayPalRefused`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

from streams.wire.codec import rfc3339
from streams.wire.money import Money
from vendors.account import Account
from vendors.calls.gate import Gate
from vendors.http.fetched import FETCH_S
from vendors.http.transport import VendorHttp
from vendors.payments.paypal.calls import WITHIN_S, PayPalCalls, Step, path_of
from vendors.payments.paypal.certificates import WEBHOOK_CERTIFICATES, NotGenuine
from vendors.payments.paypal.disputes import Dispute, DisputePage
from vendors.payments.paypal.errors import PayPalRefused
from vendors.payments.paypal.events import EventPage
from vendors.payments.paypal.fields import amount_body, payout_body, total_body
from vendors.payments.paypal.orders import Capture, Order
from vendors.payments.paypal.payouts import PAYOUTS, Payout, is_duplicate
from vendors.payments.paypal.refunds import CAPTURES, Refund, SaleRefund
from vendors.payments.paypal.subscriptions import Plan, Sale, Subscription, Transaction, Transactions
from vendors.payments.paypal.webhooks import SignedWebhook, Verification

BASE_URL = "https://api-m.paypal.com"
_ORDERS = "/v2/checkout/orders"
_CAPTURE_REFUNDS = "/v2/payments/refunds"
_PLANS = "/v1/billing/plans"
_SUBSCRIPTIONS = "/v1/billing/subscriptions"
_SALES = "/v1/payments/sale"
_SALE_REFUNDS = "/v1/payments/refund"
_DISPUTES = "/v1/customer/disputes"
_EVENTS = "/v1/notifications/webhooks-events"
_VERIFY = "/v1/notifications/verify-webhook-signature"
_SALE_REFUNDED = "PAYMENT.SALE.REFUNDED"
_ENDED = "SUBSCRIPTION_STATUS_INVALID"
_PAGE = 100
_DISPUTES_PAGE = 50


class PayPal(PayPalCalls):
    def __init__(
        self,
        http: VendorHttp,
        account: Account,
        gate: Gate,
        *,
        client_id: str,
        within_s: float = WITHIN_S,
        certificates: Gate | None = None,
    ) -> None:
        """`certificates` is the gate of fetches of certificates, which are on another host. Default: `gate`."""
        super().__init__(http, account, gate, client_id=client_id, within_s=within_s)
        self._certificates = certificates or gate

    async def create_order(
        self,
        key: str,
        *,
        amount: Money,
        custom_id: str,
        description: str = "",
        return_url: str,
        cancel_url: str,
        brand_name: str = "",
        locale: str = "",
    ) -> Order:
        """Create an order of `amount`, once for each `key`, which PayPal remembers for six hours.

        `custom_id` is at most 127 printable ASCII characters, `description` and `brand_name` 127 characters.
        """
        unit: dict[str, Any] = {"custom_id": custom_id, "amount": amount_body(amount)}
        context = {
            "return_url": return_url,
            "cancel_url": cancel_url,
            "shipping_preference": "NO_SHIPPING",
            "user_action": "PAY_NOW",
        }
        if description:
            unit["description"] = description
        if brand_name:
            context["brand_name"] = brand_name
        if locale:
            context["locale"] = locale
        body = {"intent": "CAPTURE", "purchase_units": [unit], "application_context": context}
        return await self.post(key, _ORDERS, body, Order)

    async def order(self, order_id: str) -> Order:
        """Read an order. `PayPalRefused.not_found`: it does not exist, or has expired unapproved."""
        return await self.get(path_of(_ORDERS, order_id), Order)

    async def capture_order(self, key: str, order_id: str) -> Order:
        """Take the payment of an approved order.

        Issues: `ORDER_NOT_APPROVED`; `ORDER_ALREADY_CAPTURED` (read it: it has succeeded); `INSTRUMENT_DECLINED`
        and `PAYER_ACTION_REQUIRED` (the payer has to approve again).
        """
        return await self.post(key, path_of(_ORDERS, order_id, "/capture"), {}, Order)

    async def capture(self, capture_id: str) -> Capture:
        return await self.get(path_of(CAPTURES, capture_id), Capture)

    async def refund_capture(self, key: str, capture_id: str, amount: Money) -> Refund:
        """Refund a part of a capture, or all of it, once for each `key`, which PayPal remembers for 45 days.

        Issues: `CAPTURE_FULLY_REFUNDED`, `REFUND_AMOUNT_EXCEEDED`, `REFUND_TIME_LIMIT_EXCEEDED` (180 days).
        """
        path = path_of(CAPTURES, capture_id, "/refund")
        return await self.post(key, path, {"amount": amount_body(amount)}, Refund)

    async def capture_refund(self, refund_id: str) -> Refund:
        return await self.get(path_of(_CAPTURE_REFUNDS, refund_id), Refund)

    async def plan(self, plan_id: str) -> Plan:
        return await self.get(path_of(_PLANS, plan_id), Plan)

    async def create_subscription(
        self,
        key: str,
        *,
        plan_id: str,
        custom_id: str,
        return_url: str,
        cancel_url: str,
        brand_name: str = "",
        country: str = "",
    ) -> Subscription:
        """Create a subscription that starts once it is approved, once for each `key`.

        PayPal remembers keys for 72 hours. `custom_id` is at most 127 printable ASCII characters. `country` is a
        hint at the subscriber's address. Issue: `PLAN_STATUS_INVALID`.
        """
        context: dict[str, Any] = {
            "return_url": return_url,
            "cancel_url": cancel_url,
            "shipping_preference": "NO_SHIPPING",
            "user_action": "SUBSCRIBE_NOW",
            "payment_method": {"payer_selected": "PAYPAL", "payee_preferred": "IMMEDIATE_PAYMENT_REQUIRED"},
        }
        if brand_name:
            context["brand_name"] = brand_name
        body: dict[str, Any] = {"plan_id": plan_id, "custom_id": custom_id, "application_context": context}
        if country:
            body["subscriber"] = {"shipping_address": {"address": {"country_code": country}}}
        return await self.post(key, _SUBSCRIPTIONS, body, Subscription)

    async def subscription(self, subscription_id: str) -> Subscription:
        """Read a subscription with its plan and its last failed payment."""
        query = {"fields": "last_failed_payment,plan"}
        return await self.get(path_of(_SUBSCRIPTIONS, subscription_id), Subscription, query)

    async def cancel_subscription(self, key: str, subscription_id: str, *, reason: str) -> None:
        """Cancel a subscription. `reason` is 1 to 128 characters.

        Nothing is raised if the subscription has ended already, or if it cannot be cancelled because it is not
        approved yet. Read it to learn its state.
        """
        path = path_of(_SUBSCRIPTIONS, subscription_id, "/cancel")
        try:
            await self.command(key, path, {"reason": reason})
        except PayPalRefused as error:
            if error.issue != _ENDED:
                raise

    async def transactions(self, subscription_id: str, *, start: datetime, end: datetime) -> Sequence[Transaction]:
        """Return the payments of a subscription from `start` to `end`, oldest first.

        The newest ones may be missing for some minutes.
        """
        path = path_of(_SUBSCRIPTIONS, subscription_id, "/transactions")
        query = {"start_time": rfc3339(start), "end_time": rfc3339(end)}
        found = await self.get(path, Transactions, query)
        return sorted(found.transactions, key=lambda transaction: transaction.time)

    async def sale(self, sale_id: str) -> Sale:
        return await self.get(path_of(_SALES, sale_id), Sale)

    async def refund_sale(self, key: str, sale_id: str, amount: Money) -> Refund:
        """Refund a part of a sale, or all of it, once for each `key`, which PayPal remembers for 30 days."""
        path = path_of(_SALES, sale_id, "/refund")
        return (await self.post(key, path, {"amount": total_body(amount)}, SaleRefund)).refund

    async def refunds_of_sale(self, sale_id: str, *, start: datetime, end: datetime) -> Sequence[Refund]:
        """Return the refunds of a sale that were made from `start` to `end`, by whomever.

        A sale does not show its refunds. They are found by their events, which PayPal lists for 30 days.
        """
        found: dict[str, None] = {}
        page = ""
        while True:
            listed = await self.events(start=start, end=end, event_type=_SALE_REFUNDED, page=page)
            found |= {event.text("id"): None for event in listed.events if event.text("sale_id") == sale_id}
            page = listed.next
            if not page or listed.is_empty:
                return [await self.sale_refund(refund_id) for refund_id in found]

    async def sale_refund(self, refund_id: str) -> Refund:
        return (await self.get(path_of(_SALE_REFUNDS, refund_id), SaleRefund)).refund

    async def dispute(self, dispute_id: str) -> Dispute:
        return await self.get(path_of(_DISPUTES, dispute_id), Dispute)

    async def disputes(self, *, since: datetime, before: datetime | None = None, page: str = "") -> DisputePage:
        """Return a page of the disputes whose last change is after a time, and before another one if it is given.

        The times are within the last 180 days. `page` is the `next` of the page before. Issue: `PERMISSION_DENIED`
        if our app may not read disputes.
        """
        first = {"page_size": str(_DISPUTES_PAGE), "update_time_after": rfc3339(since)}
        if before is not None:
            first["update_time_before"] = rfc3339(before)
        return await self.get(_DISPUTES, DisputePage, dict(parse_qsl(page)) or first)

    async def create_payout(
        self,
        batch_id: str,
        *,
        receiver: str,
        amount: Money,
        note: str = "",
        subject: str = "",
        before: Step | None = None,
    ) -> Payout:
        """Pay `amount` to an email address, once for each `batch_id`, and return the batch.

        PayPal remembers `batch_id`, which is at most 63 characters here, for 30 days. A call that repeats it
        returns the first batch. `before` is as for `post`.
        """
        header = {"sender_batch_id": batch_id, **({"email_subject": subject} if subject else {})}
        item = {
            "recipient_type": "EMAIL",
            "amount": payout_body(amount),
            "receiver": receiver,
            "sender_item_id": batch_id,
            **({"note": note} if note else {}),
        }
        body = {"sender_batch_header": header, "items": [item]}
        try:
            return await self.post(batch_id, PAYOUTS, body, Payout, before=before)
        except PayPalRefused as error:
            first = error.linked_id(PAYOUTS)
            if first is None or not is_duplicate(error):
                raise
            try:
                return await self.payout(first)
            except PayPalRefused as unread:
                raise error from unread  # The caller must know that there is a batch.

    async def payout(self, payout_id: str) -> Payout:
        """Read a batch by PayPal's id."""
        return await self.get(path_of(PAYOUTS, payout_id), Payout)

    async def events(self, *, start: datetime, end: datetime, event_type: str = "", page: str = "") -> EventPage:
        """Return a page of the app's events between two times, also those that no webhook has delivered.

        `event_type` selects those of one type. `page` is the `next` of the page before.
        """
        first = {"page_size": str(_PAGE), "start_time": rfc3339(start), "end_time": rfc3339(end)}
        if event_type:
            first["event_type"] = event_type
        # The link names a host too, but calls go to the configured one.
        return await self.get(_EVENTS, EventPage, dict(parse_qsl(page)) or first)

    async def verify_offline(
        self, webhook: SignedWebhook, *, webhook_id: str, hosts: Sequence[str], authorities: str = "", now: datetime
    ) -> None:
        """Verify a webhook with the certificate that it names. `authorities` replace the public ones.

        Raise `NotGenuine`, or `VendorError` if the certificate is not known and cannot be fetched.
        """
        key = await WEBHOOK_CERTIFICATES.find(
            self._http,
            self.vendor,
            webhook.certificate_url,
            hosts=hosts,
            authorities=authorities,
            now=now,
            limited=lambda fetch: self._certificates.call(self.vendor, fetch, within_s=FETCH_S),
        )
        webhook.check(key, webhook_id=webhook_id)

    async def verify_online(self, webhook: SignedWebhook, *, webhook_id: str) -> None:
        """Ask PayPal whether it has sent a webhook. Raise `NotGenuine`, or `VendorError` if there is no answer."""
        answer = await self.ask(_VERIFY, webhook.question(webhook_id), Verification)
        if answer.verification_status != "SUCCESS":
            raise NotGenuine("PayPal does not recognize the signature")
