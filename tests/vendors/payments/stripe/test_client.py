"""Our client of Stripe, at the sandbox."""

from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from streams.wire.errors import InvalidParameter
from streams.wire.money import Money
from tests.sampling import paired
from vendors.calls.breaker import BreakerPolicy
from vendors.calls.gate import GatePolicy
from vendors.errors import VendorError
from vendors.payments.stripe.client import Stripe
from vendors.payments.stripe.errors import CardDeclined
from vendors.payments.stripe.objects import PaymentIntent, platform_amount
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running


async def pay(stripe: Stripe, key: str = "1:create", **changes: Any) -> PaymentIntent:
    customer = changes.pop("customer", None) or (await stripe.create_customer("1:customer", metadata={})).id
    params: dict[str, Any] = {
        "amount": 199, "currency": "USD", "customer": customer, "payment_method": None, "confirm": False,
        "email": None, "metadata": {"payment": "1"},
    }  # fmt: skip
    return await stripe.create_payment_intent(key, **{**params, **changes})


async def control(sandbox: Running, action: str, **body: Any) -> dict[str, Any]:
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{sandbox.url}/stripe/_sandbox/{action}", json=body) as response,
    ):
        answer: dict[str, Any] = await response.json()
        return answer


async def test_a_payment_is_created_confirmed_and_read(stripe: Stripe) -> None:
    created = await pay(stripe, email="a@example.com")
    assert (created.status, created.amount, created.currency) == ("requires_payment_method", 199, "usd")
    assert created.client_secret is not None
    assert created.client_secret.startswith(f"{created.id}_secret_")
    confirmed = await stripe.confirm_payment_intent("1:confirm", created.id, payment_method="pm_card_visa")
    assert confirmed.status == "succeeded"
    assert await stripe.payment_intent(created.id) == confirmed
    assert [intent.id for intent in (await stripe.payment_intents(created.customer or "")).data] == [created.id]


async def test_a_repeated_key_charges_once(stripe: Stripe, sandbox: Running) -> None:
    first, again = await pay(stripe), await pay(stripe)
    assert first == again
    with pytest.raises(VendorError, match="idempotent"):
        await pay(stripe, amount=200)


async def test_a_declined_card_leaves_an_intent_that_can_be_paid_with_another(stripe: Stripe) -> None:
    declined = await pay(stripe, payment_method="pm_card_visa_chargeDeclined", confirm=True)
    assert (declined.status, declined.payment_method) == ("requires_payment_method", None)
    again = await stripe.confirm_payment_intent("1:c", declined.id, payment_method="pm_card_authenticationRequired")
    assert again.status == "requires_action"
    paid = await stripe.confirm_payment_intent("1:d", declined.id, payment_method="pm_card_visa")
    assert paid.status == "succeeded"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("pm_card_visa_chargeDeclinedInsufficientFunds", "insufficient_funds"),
        ("pm_card_visa_chargeDeclinedStolenCard", "card_declined"),
        ("pm_card_chargeDeclinedExpiredCard", "expired_card"),
    ],
)
async def test_a_card_that_cannot_be_attached_is_declined_without_its_secret_reason(
    stripe: Stripe, name: str, code: str
) -> None:
    customer = await stripe.create_customer("1:customer", metadata={})
    with pytest.raises(CardDeclined) as declined:
        await stripe.attach("1:attach", name, customer=customer.id)
    assert declined.value.extra == {"code": code}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"amount": 1}, "invalid_parameter: amonut is refused by the card platform (amount_too_small)"),
        ({"currency": "U1D"}, "invalid_parameter: currency is refused by the card platform"),
        ({"email": "nobody"}, "invalid_parameter: email is refused by the card platform (email_invalid)"),
    ],
)
async def test_parameters_that_the_platform_refuses_are_named_as_clients_name_them(
    stripe: Stripe, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidParameter) as refused:
        await pay(stripe, **changes)
    assert str(refused.value) == message


async def test_the_newest_card_of_a_customer_is_first(stripe: Stripe, sandbox: Running) -> None:
    customer = (await stripe.create_customer("1:customer", metadata={"uid": "1"})).id
    assert await stripe.cards(customer) == []
    older = await stripe.attach("1:a", "pm_card_visa", customer=customer)
    await control(sandbox, "clock", by_s=60)
    newer = await stripe.attach("1:b", "pm_card_mastercard", customer=customer)
    assert [card.id for card in await stripe.cards(customer)] == [newer.id, older.id]
    assert (await stripe.customer(customer)).default_method is None
    await stripe.set_default_method("1:c", customer, payment_method=older.id)
    assert (await stripe.customer(customer)).default_method == older.id


async def test_a_subscription_lives_until_the_end_of_its_period(stripe: Stripe, sandbox: Running) -> None:
    customer = (await stripe.create_customer("1:customer", metadata={})).id
    setup = await stripe.create_setup_intent("1:setup", customer=customer)
    done = await stripe.confirm_setup_intent("1:confirm", setup.id, payment_method="pm_card_visa")
    assert (done.status, await stripe.setup_intent(setup.id)) == ("succeeded", done)
    params: dict[str, Any] = {
        "customer": customer,
        "price": "price_pro_month",
        "trial_end": None,
        "metadata": {"row": "1"},
    }
    created = await stripe.create_subscription("1:create", payment_method=done.payment_method, **params)
    assert (created.status, created.metadata) == ("active", {"row": "1"})
    [invoice] = await stripe.paid_invoices(created.id)
    assert (invoice.subscription_id, invoice.amount_paid) == (created.id, 999)
    assert invoice.period is not None
    assert invoice.period.end == created.period_end
    assert await stripe.invoice(invoice.id) == invoice
    [payment] = await stripe.payments_of_invoice(invoice.id)
    intent = payment.payment.payment_intent
    assert intent is not None
    assert [payment.invoice for payment in await stripe.invoices_paid_by(intent)] == [invoice.id]
    cancelled = await stripe.cancel_at_period_end("1:cancel", created.id)
    assert (cancelled.status, cancelled.cancel_at_period_end) == ("active", True)
    await control(sandbox, "clock", by_s=32 * 86400)
    assert (await stripe.subscription(created.id)).status == "canceled"
    assert [subscription.id for subscription in (await stripe.subscriptions(customer)).data] == [created.id]
    incomplete = await stripe.create_subscription("2:create", payment_method=None, **params)
    assert incomplete.status == "incomplete"
    other = await stripe.attach("2:attach", "pm_card_visa", customer=customer)
    await stripe.set_subscription_method("2:method", incomplete.id, payment_method=other.id)
    assert (await stripe.cancel_now("2:cancel", incomplete.id)).status == "canceled"


async def test_refunds_disputes_and_events_are_listed(stripe: Stripe, sandbox: Running) -> None:
    paid = await pay(stripe, payment_method="pm_card_createDispute", confirm=True)
    [dispute] = await stripe.disputes(paid.id)
    assert (dispute.status, dispute.payment_intent) == ("needs_response", paid.id)
    async with aiohttp.ClientSession(headers={"Authorization": "Bearer sandbox"}) as http:
        await http.post(f"{sandbox.url}/stripe/v1/refunds", data={"payment_intent": paid.id, "amount": "100"})
    [refund] = await stripe.refunds(paid.id)
    assert (refund.amount, refund.status, refund.payment_intent) == (100, "succeeded", paid.id)
    page = await stripe.events(since=0, after=None)
    types = [event["type"] for event in page.data]
    assert types[:2] == ["charge.refunded", "refund.created"]
    rest = await stripe.events(since=0, after=page.data[0]["id"])
    assert rest.data == page.data[1:]
    assert (await stripe.events(since=page.data[0]["created"] + 60, after=None)).data == []


async def test_a_declined_card_is_no_failure_of_the_account_and_a_fault_is(
    open_stripe: Callable[..., Stripe], stripe: Stripe
) -> None:
    customer = (await stripe.create_customer("1:customer", metadata={})).id
    breaks_at_once = GatePolicy(breaker=BreakerPolicy(min_calls=1, failure_ratio=0.1))
    gated, faulty = (open_stripe(key, breaks_at_once) for key in ("sandbox", key_of(fault="server_error")))
    for number in range(3):
        with pytest.raises(CardDeclined):
            await gated.attach(f"{number}:attach", "pm_card_visa_chargeDeclined", customer=customer)
    with pytest.raises(VendorError, match="answered 404"):
        await gated.payment_intent("pi_unknown")
    assert (await gated.customer(customer)).id == customer
    with pytest.raises(VendorError, match="answered 500"):
        await faulty.customer(customer)
    with pytest.raises(VendorError, match="is skipped for now"):
        await faulty.customer(customer)


FAULTS = [
    "refuse", "unauthorized", "rate_limited", "out_of_quota", "server_error", "unavailable", "wrong_content_type",
    "redirect", "cut_mid_stream", "malformed_frame", "error_inside_200", "empty_answer",
]  # fmt: skip
CALLS: dict[str, Callable[[Stripe], Awaitable[Any]]] = {
    "read": lambda stripe: stripe.payment_intent("pi_1"),
    "list": lambda stripe: stripe.events(since=0, after=None),
    "create": lambda stripe: stripe.create_customer("1", metadata={}),
    "intent": lambda stripe: pay(stripe, customer="cus_1"),
    "delete": lambda stripe: stripe.cancel_now("1", "sub_1"),
}


@pytest.mark.parametrize(("fault", "call"), paired(FAULTS, [*CALLS]))
async def test_every_fault_is_an_error_of_the_vendor(
    open_stripe: Callable[..., Stripe], fault: str, call: str
) -> None:
    with pytest.raises(VendorError):
        await CALLS[call](open_stripe(key_of(fault=fault, retry_after_s=0.01, position=0)))


async def test_a_connection_that_is_lost_after_the_charge_leaves_one_payment(
    open_stripe: Callable[..., Stripe], stripe: Stripe
) -> None:
    customer = (await stripe.create_customer("1:customer", metadata={})).id
    lost = open_stripe(key_of(fault="cut_mid_stream", position=0))
    charged = {"customer": customer, "payment_method": "pm_card_visa", "confirm": True}
    with pytest.raises(VendorError):
        await pay(lost, **charged)
    [found] = (await stripe.payment_intents(customer)).data
    assert found.status == "succeeded"
    assert await pay(stripe, **charged) == found
    assert len((await stripe.payment_intents(customer)).data) == 1


async def test_ids_cannot_leave_their_part_of_the_path(stripe: Stripe, sandbox: Running) -> None:
    for name in ("../customers", "a/confirm", "?limit=1", "a b"):
        with pytest.raises(VendorError):
            await stripe.payment_intent(name)
    assert {call.asked.get("path") for call in sandbox.bill.since(0)} <= {"payment_intents/{id}"}


@pytest.mark.parametrize(
    ("currency", "amount", "sent"),
    [
        ("USD", 199, 199),
        ("JPY", 500, 500),
        ("ISK", 500, 50000),
        ("UGX", 7, 700),
        ("MGA", 500, 5),
    ],
)
def test_amounts_are_sent_in_the_unit_of_the_platform(currency: str, amount: int, sent: int) -> None:
    assert platform_amount(Money(amount, currency)) == sent


@pytest.mark.parametrize(
    ("currency", "amount", "message"), [("MGA", 501, "whole number"), ("KWD", 1235, "multiple of 10")]
)
def test_an_amount_that_the_platform_cannot_express_is_refused(currency: str, amount: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        platform_amount(Money(amount, currency))


async def test_the_sandbox_refuses_amounts_that_the_platform_cannot_express(stripe: Stripe) -> None:
    assert (await pay(stripe, currency="KWD", amount=1230)).amount == 1230
    with pytest.raises(InvalidParameter, match="amonut"):
        await pay(stripe, "2:create", currency="KWD", amount=1235)
