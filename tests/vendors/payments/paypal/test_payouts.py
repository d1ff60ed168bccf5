"""PayPal's payouts: batches of one payment, recognized by our id."""

import pytest

from streams.wire.codec import dumps, loads
from streams.wire.errors import ConfigInvalid
from streams.wire.ids import new_id
from streams.wire.money import Money
from tests.vendors.payments.paypal.calls import Merchant, merchant
from vendors.calls.breaker import BreakerPolicy
from vendors.calls.gate import GatePolicy
from vendors.errors import Refused
from vendors.http.transport import VendorHttp
from vendors.payments.paypal.errors import PayPalRefused, refused
from vendors.payments.paypal.payouts import Payout, is_duplicate
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.payments.paypal.payouts import OUTCOMES
from vendors.sandbox.server import Running

AMOUNT = Money(987, "USD")
DUPLICATE = "Batch with given sender_batch_id already exists"


async def pay(shop: Merchant, receiver: str, batch_id: str = "") -> Payout:
    return await shop.paypal.create_payout(batch_id or new_id(), receiver=receiver, amount=AMOUNT, note="Thanks")


async def test_a_payout_is_pending_at_first_and_then_paid(shop: Merchant):
    made = await pay(shop, "mei@example.test")

    found = await shop.paypal.payout(made.id)

    assert (made.status, made.item) == ("PENDING", None)
    assert found.status == "SUCCESS"
    assert found.item is not None
    assert (found.item.transaction_status, found.item.error) == ("SUCCESS", "")


async def test_a_repeated_call_returns_the_first_batch(shop: Merchant):
    first = await pay(shop, "mei@example.test", "withdrawal-7")
    same = await pay(shop, "mei@example.test", "withdrawal-7")

    assert (same.id, same.status) == (first.id, "SUCCESS")


async def test_the_refusal_of_a_repeated_batch_is_as_paypal_sends_it(shop: Merchant):
    first = await pay(shop, "mei@example.test", "withdrawal-7")
    header, item = {"sender_batch_id": "withdrawal-7"}, {"recipient_type": "EMAIL", "receiver": "mei@example.test"}
    body = {"sender_batch_header": header, "items": [{**item, "amount": {"currency": "USD", "value": "9.87"}}]}

    with pytest.raises(PayPalRefused) as raised:
        await shop.paypal.post("withdrawal-7", "/v1/payments/payouts", body, Payout)

    sent = loads(raised.value.body)
    link = sent["details"][0].pop("link")
    assert (raised.value.vendor_status, sent["name"], sent["links"]) == (400, "USER_BUSINESS_ERROR", [])
    assert sent["details"] == [{"field": "SENDER_BATCH_ID", "location": "body", "issue": DUPLICATE}]
    assert [target["href"].rpartition("/")[2] for target in link] == [first.id]


@pytest.mark.parametrize(
    ("name", "issue", "field", "duplicate"),
    [
        ("USER_BUSINESS_ERROR", DUPLICATE, "SENDER_BATCH_ID", True),
        ("USER_BUSINESS_ERROR", "Duplicate batch request", "SENDER_BATCH_ID", True),
        ("USER_BUSINESS_ERROR", "Duplicate batch request", "", True),
        ("DUPLICATE_REQUEST_ID", "", "", True),
        ("VALIDATION_ERROR", "Receiver is invalid or does not match with type", "items[0].receiver", False),
    ],
)
def test_a_repeated_batch_is_recognized_without_a_link(name: str, issue: str, field: str, duplicate: bool):
    details = [{"issue": issue, "field": field}] if issue else []
    error = Refused("payouts", "answered 400", retryable=False, vendor_status=400)
    error.body = dumps({"name": name, "message": "User business error.", "details": details, "links": []})

    assert is_duplicate(refused(error)) is duplicate


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

    found = (await shop.paypal.payout(made.id)).item

    assert found is not None
    assert (found.transaction_status, found.error) == OUTCOMES[name]


async def test_a_refused_batch_has_no_payment(shop: Merchant):
    made = await pay(shop, "denied@example.test")

    assert (await shop.paypal.payout(made.id)).status == "DENIED"


async def test_a_batch_without_money_is_not_made(shop: Merchant):
    with pytest.raises(PayPalRefused, match="INSUFFICIENT_FUNDS"):
        await pay(shop, "nomoney@example.test")


async def test_what_nobody_claims_is_returned(shop: Merchant):
    made = await pay(shop, "unregistered@example.test")
    await shop.move_clock(31)

    found = (await shop.paypal.payout(made.id)).item

    assert found is not None
    assert (found.transaction_status, found.error) == ("RETURNED", "RECEIVER_UNREGISTERED")


async def test_a_payment_may_be_paid_or_reversed_later(shop: Merchant):
    made = await pay(shop, "slow@example.test")
    slow = await shop.paypal.payout(made.id)

    await shop.control("payout", payout_id=made.id, status="SUCCESS")
    paid = await shop.paypal.payout(made.id)
    await shop.control("payout", payout_id=made.id, status="REVERSED")
    reversed_ = await shop.paypal.payout(made.id)

    states = [payout.item.transaction_status for payout in (slow, paid, reversed_) if payout.item]
    assert states == ["PENDING", "SUCCESS", "REVERSED"]
    assert (slow.status, paid.status) == ("PROCESSING", "SUCCESS")


async def test_a_payout_is_announced_once_right_before_it_is_sent(shop: Merchant):
    sent_before: list[int] = []

    async def before() -> None:
        sent_before.append(len(shop.calls("payout")))

    await shop.order()
    await shop.control("revoke_tokens")  # The call is sent again with another token.
    made = await shop.paypal.create_payout(new_id(), receiver="ada@example.com", amount=AMOUNT, before=before)

    assert (await shop.paypal.payout(made.id)).id == made.id
    assert sent_before == [0]


async def test_a_payout_that_cannot_be_sent_is_not_announced(http: VendorHttp, sandbox: Running):
    async def before() -> None:
        raise AssertionError("the payout is announced")

    async def pay(shop: Merchant) -> None:
        await shop.paypal.create_payout(new_id(), receiver="ada@example.com", amount=AMOUNT, before=before)

    async with merchant(http, sandbox, secret="wrong") as shop:
        with pytest.raises(ConfigInvalid):
            await pay(shop)
    policy = GatePolicy(breaker=BreakerPolicy(min_calls=1, failure_ratio=0.1))
    async with merchant(http, sandbox, policy=policy) as shop:
        await shop.order()
        sandbox.sandbox.switches["paypal"] = KeyOptions(fault=Fault.UNAVAILABLE, retry_after_s=9)
        with pytest.raises(PayPalRefused):
            await shop.order()
        with pytest.raises(Refused, match="is skipped for now"):
            await pay(shop)


async def test_a_payout_whose_announcement_fails_is_not_sent(shop: Merchant):
    async def before() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await shop.paypal.create_payout(new_id(), receiver="ada@example.com", amount=AMOUNT, before=before)

    assert shop.calls("payout") == []
