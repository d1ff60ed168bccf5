"""The books of a merchant of the sandbox's PayPal show everything that has moved money."""

from typing import Any

from streams.wire.ids import new_id
from streams.wire.money import Money
from tests.vendors.payments.paypal.calls import Merchant


async def books(shop: Merchant) -> dict[str, Any]:
    url = f"{shop.sandbox.url}/paypal/_control/books"
    async with shop.browser.get(url, params={"client_id": shop.client_id}, raise_for_status=True) as response:
        found: dict[str, Any] = await response.json()
        return found


async def test_a_new_merchant_has_empty_books(shop: Merchant) -> None:
    lists = ("payments", "refunds", "disputes", "payouts", "subscriptions")
    assert await books(shop) == {name: [] for name in lists}


async def test_payments_refunds_payouts_and_subscriptions_are_in_the_books(shop: Merchant) -> None:
    order = await shop.approved_order()
    (capture,) = (await shop.paypal.capture_order(new_id(), order.id)).captures
    refund = await shop.paypal.refund_capture(new_id(), capture.id, Money(50, "USD"))
    subscription = await shop.subscribed()
    batch = new_id()
    payout = await shop.paypal.create_payout(batch, receiver="ada@example.com", amount=Money(300, "USD"))

    found = await books(shop)

    captured, sale = found["payments"]
    assert (captured["id"], captured["order_id"], captured["status"]) == (
        capture.id, order.id, "PARTIALLY_REFUNDED",
    )  # fmt: skip
    assert (captured["amount"], captured["refunded"]) == (199, 50)
    assert (sale["subscription_id"], sale["order_id"], sale["status"]) == (subscription.id, "", "COMPLETED")
    assert found["refunds"] == [
        {
            "id": refund.id, "payment_id": capture.id, "amount": 50, "status": "COMPLETED",
            "is_reversal": False, "by_call": True,
        },
    ]  # fmt: skip
    assert [(listed["id"], listed["sender_batch_id"]) for listed in found["payouts"]] == [(payout.id, batch)]
    [listed] = found["subscriptions"]
    assert (listed["id"], listed["status"], listed["failed_at"]) == (subscription.id, "ACTIVE", None)
    assert listed["due_at"] == listed["next_at"] > sale["at"]
