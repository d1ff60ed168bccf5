"""PayPal's payouts: batches of one payment, recognized by our id."""

import pytest

from streams.wire.ids import new_id
from streams.wire.money import Money
from tests.vendors.payments.paypal_calls import Merchant
from vendors.payments.paypal_errors import PayPalRefused
from vendors.payments.paypal_payouts import Payout, create_payout, get_payout
from vendors.sandbox.payments.paypal_payouts import OUTCOMES

AMOUNT = Money(987, "USD")


async def pay(shop: Merchant, receiver: str, batch_id: str = "") -> Payout:
    return await create_payout(shop.paypal, batch_id or new_id(), receiver=receiver, amount=AMOUNT, note="Thanks")


async def test_a_payout_is_pending_at_first_and_then_paid(shop: Merchant):
    made = await pay(shop, "mei@example.test")

    found = await get_payout(shop.paypal, made.id)

    assert (made.status, made.item) == ("PENDING", None)
    assert found.status == "SUCCESS"
    assert found.item is not None
    assert (found.item.transaction_status, found.item.error) == ("SUCCESS", "")


async def test_a_repeated_call_returns_the_first_batch(shop: Merchant):
    first = await pay(shop, "mei@example.test", "withdrawal-7")
    same = await pay(shop, "mei@example.test", "withdrawal-7")

    assert same == first


async def test_a_batch_id_that_was_sent_with_another_key_is_the_first_batch(shop: Merchant):
    first = await pay(shop, "mei@example.test", "withdrawal-7")
    header = {"sender_batch_id": "withdrawal-8"}
    item = {"recipient_type": "EMAIL", "amount": {"currency": "USD", "value": "1.00"}, "receiver": "a@b.test"}
    body = {"sender_batch_header": header, "items": [item]}
    other = await shop.paypal.post("another-key", "/v1/payments/payouts", body, Payout)

    found = await pay(shop, "mei@example.test", "withdrawal-8")

    assert found.id == other.id != first.id
    assert found.status == "SUCCESS"


async def test_a_batch_id_is_forgotten_after_thirty_days(shop: Merchant):
    first = await pay(shop, "mei@example.test", "withdrawal-7")
    await shop.move_clock(30.1)

    assert (await pay(shop, "mei@example.test", "withdrawal-7")).id != first.id


@pytest.mark.parametrize("name", OUTCOMES)
async def test_the_state_of_the_payment_tells_what_has_become_of_it(shop: Merchant, name: str):
    made = await pay(shop, f"{name}@example.test")

    found = (await get_payout(shop.paypal, made.id)).item

    assert found is not None
    assert (found.transaction_status, found.error) == OUTCOMES[name]


async def test_a_refused_batch_has_no_payment(shop: Merchant):
    made = await pay(shop, "denied@example.test")

    assert (await get_payout(shop.paypal, made.id)).status == "DENIED"


async def test_a_batch_without_money_is_not_made(shop: Merchant):
    with pytest.raises(PayPalRefused, match="INSUFFICIENT_FUNDS"):
        await pay(shop, "nomoney@example.test")


async def test_what_nobody_claims_is_returned(shop: Merchant):
    made = await pay(shop, "unregistered@example.test")
    await shop.move_clock(31)

    found = (await get_payout(shop.paypal, made.id)).item

    assert found is not None
    assert (found.transaction_status, found.error) == ("RETURNED", "RECEIVER_UNREGISTERED")


async def test_a_payment_may_be_paid_or_reversed_later(shop: Merchant):
    made = await pay(shop, "slow@example.test")
    slow = await get_payout(shop.paypal, made.id)

    await shop.control("payout", payout_id=made.id, status="SUCCESS")
    paid = await get_payout(shop.paypal, made.id)
    await shop.control("payout", payout_id=made.id, status="REVERSED")
    reversed_ = await get_payout(shop.paypal, made.id)

    states = [each.item.transaction_status for each in (slow, paid, reversed_) if each.item]
    assert states == ["PENDING", "SUCCESS", "REVERSED"]
    assert (slow.status, paid.status) == ("PROCESSING", "SUCCESS")
