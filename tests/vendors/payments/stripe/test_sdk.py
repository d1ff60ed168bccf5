"""The official Stripe package drives the sandbox, so its wire is the one that Stripe documents."""

from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
import stripe as sdk

from tests.vendors.payments.stripe.receiver import receiving
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

CARD = {"number": "4242424242424242", "exp_month": 12, "exp_year": 2040, "cvc": "123"}


@pytest.fixture
def open_sdk(sandbox: Running) -> Callable[..., sdk.StripeClient]:
    def open_(key: str = "sandbox") -> sdk.StripeClient:
        urls: Any = {"api": f"{sandbox.url}/stripe"}
        return sdk.StripeClient(key, base_addresses=urls, http_client=sdk.AIOHTTPClient(), max_network_retries=0)

    return open_


@pytest.fixture
async def client(open_sdk: Callable[..., sdk.StripeClient]) -> Any:
    opened = open_sdk()
    yield opened.v1
    await opened._requestor._client.close_async()


async def subscribed(client: Any, *, name: str = "pm_card_visa", **more: Any) -> Any:
    customer = await client.customers.create_async({})
    method = await client.payment_methods.attach_async(name, {"customer": customer.id})
    params = {
        "customer": customer.id,
        "items": [{"price": "price_pro_month"}],
        "default_payment_method": method.id,
        "expand": ["latest_invoice"],
        **more,
    }
    return await client.subscriptions.create_async(params)


async def advance(sandbox: Running, *, days: int) -> None:
    async with aiohttp.ClientSession() as http:
        await http.post(f"{sandbox.url}/stripe/_sandbox/clock", json={"by_s": days * 86400})


async def test_customers_have_methods_and_a_default(client: Any) -> None:
    customer = await client.customers.create_async({"email": "a@example.com", "metadata": {"uid": "1"}})
    method = await client.payment_methods.create_async({"type": "card", "card": CARD})
    assert (method.card.last4, method.customer) == ("4242", None)
    await client.payment_methods.attach_async(method.id, {"customer": customer.id})
    settings = {"invoice_settings": {"default_payment_method": method.id}}
    await client.customers.update_async(customer.id, settings)
    found = await client.customers.retrieve_async(customer.id)
    assert found.invoice_settings.default_payment_method == method.id
    assert found.metadata["uid"] == "1"
    listed = await client.customers.payment_methods.list_async(customer.id)
    assert [card.id for card in listed.data] == [method.id]
    await client.payment_methods.detach_async(method.id)
    assert (await client.payment_methods.list_async({"customer": customer.id})).data == []


async def test_a_payment_is_confirmed_and_refunded(client: Any) -> None:
    intent = await client.payment_intents.create_async({"amount": 199, "currency": "usd"})
    assert (intent.status, intent.payment_method) == ("requires_payment_method", None)
    paid = await client.payment_intents.confirm_async(intent.id, {"payment_method": "pm_card_visa"})
    assert (paid.status, paid.amount_received) == ("succeeded", 199)
    with pytest.raises(sdk.InvalidRequestError) as refused:
        await client.payment_intents.confirm_async(intent.id)
    assert refused.value.code == "payment_intent_unexpected_state"
    refund = await client.refunds.create_async({"payment_intent": intent.id, "amount": 99})
    assert (refund.status, refund.amount) == ("succeeded", 99)
    with pytest.raises(sdk.InvalidRequestError):
        await client.refunds.create_async({"payment_intent": intent.id, "amount": 101})
    await client.refunds.create_async({"payment_intent": intent.id})
    listed = await client.refunds.list_async({"payment_intent": intent.id})
    assert [refund.amount for refund in listed.data] == [100, 99]
    with pytest.raises(sdk.InvalidRequestError) as again:
        await client.refunds.create_async({"payment_intent": intent.id})
    assert again.value.code == "charge_already_refunded"


@pytest.mark.parametrize(
    ("name", "code", "decline_code"),
    [
        ("pm_card_visa_chargeDeclined", "card_declined", "generic_decline"),
        ("pm_card_visa_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"),
        ("pm_card_chargeDeclinedExpiredCard", "expired_card", None),
        ("pm_card_chargeDeclinedIncorrectCvc", "incorrect_cvc", None),
    ],
)
async def test_a_declined_card_is_a_card_error_with_the_intent(
    client: Any, name: str, code: str, decline_code: str | None
) -> None:
    params = {"amount": 500, "currency": "usd", "payment_method": name, "confirm": True}
    with pytest.raises(sdk.CardError) as declined:
        await client.payment_intents.create_async(params)
    error = declined.value.error
    assert error is not None
    assert (declined.value.http_status, error.code, error.decline_code) == (402, code, decline_code)
    assert error.payment_intent.status == "requires_payment_method"
    kept = await client.payment_intents.retrieve_async(error.payment_intent.id)
    assert kept.last_payment_error.code == code


async def test_a_card_that_must_be_authenticated(client: Any) -> None:
    params = {"amount": 500, "currency": "usd", "payment_method": "pm_card_authenticationRequired", "confirm": True}
    intent = await client.payment_intents.create_async(params)
    assert (intent.status, intent.next_action.type) == ("requires_action", "use_stripe_sdk")
    with pytest.raises(sdk.CardError) as declined:
        await client.payment_intents.create_async({**params, "off_session": True})
    assert declined.value.code == "authentication_required"


async def test_a_key_repeats_the_result_and_refuses_other_parameters(client: Any) -> None:
    params, once = {"amount": 500, "currency": "usd"}, {"idempotency_key": "key-1"}
    first, again = [await client.payment_intents.create_async(params, once) for _ in range(2)]
    assert first.id == again.id
    assert again.last_response.headers["Idempotent-Replayed"] == "true"
    with pytest.raises(sdk.IdempotencyError):
        await client.payment_intents.create_async({**params, "amount": 501}, once)
    declined = {**params, "payment_method": "pm_card_visa_chargeDeclined", "confirm": True}
    ids = set()
    for _ in range(2):
        with pytest.raises(sdk.CardError) as error:
            await client.payment_intents.create_async(declined, {"idempotency_key": "key-2"})
        ids.add(error.value.error.payment_intent.id)
    assert len(ids) == 1
    invalid = {**params, "amount": 1}
    with pytest.raises(sdk.InvalidRequestError) as small:
        await client.payment_intents.create_async(invalid, {"idempotency_key": "key-3"})
    assert small.value.code == "amount_too_small"
    assert (await client.payment_intents.create_async(params, {"idempotency_key": "key-3"})).amount == 500


async def test_a_setup_intent_attaches_the_card(client: Any) -> None:
    customer = await client.customers.create_async({})
    intent = await client.setup_intents.create_async({"customer": customer.id})
    done = await client.setup_intents.confirm_async(intent.id, {"payment_method": "pm_card_visa"})
    assert done.status == "succeeded"
    method = await client.payment_methods.retrieve_async(done.payment_method)
    assert method.customer == customer.id
    other = await client.setup_intents.create_async({"customer": customer.id})
    with pytest.raises(sdk.CardError):
        await client.setup_intents.confirm_async(other.id, {"payment_method": "pm_card_visa_chargeDeclined"})
    assert (await client.setup_intents.retrieve_async(other.id)).last_setup_error.code == "card_declined"


async def test_a_subscription_is_paid_and_renews_until_it_is_cancelled(client: Any, sandbox: Running) -> None:
    subscription = await subscribed(client)
    assert (subscription.status, subscription.latest_invoice.status) == ("active", "paid")
    await advance(sandbox, days=32)
    invoices = await client.invoices.list_async({"subscription": subscription.id})
    assert [invoice.billing_reason for invoice in invoices.data] == ["subscription_cycle", "subscription_create"]
    newest, first = (invoice.lines.data[0].period for invoice in invoices.data)
    assert first.end == newest.start < newest.end
    await client.subscriptions.update_async(subscription.id, {"cancel_at_period_end": True})
    await advance(sandbox, days=32)
    ended = await client.subscriptions.retrieve_async(subscription.id)
    assert (ended.status, ended.ended_at) == ("canceled", newest.end)
    assert len((await client.invoices.list_async({"subscription": subscription.id})).data) == 2


async def test_a_trial_costs_nothing_and_then_renews(client: Any, sandbox: Running) -> None:
    subscription = await subscribed(client, trial_period_days=7)
    assert (subscription.status, subscription.latest_invoice.amount_paid) == ("trialing", 0)
    await advance(sandbox, days=8)
    renewed = await client.subscriptions.retrieve_async(subscription.id, {"expand": ["latest_invoice"]})
    assert (renewed.status, renewed.latest_invoice.amount_paid) == ("active", 999)


async def test_a_subscription_whose_card_declines_is_incomplete_until_it_is_paid(client: Any) -> None:
    subscription = await subscribed(client, name="pm_card_chargeCustomerFail")
    assert subscription.status == "incomplete"
    payments = await client.invoice_payments.list_async({"invoice": subscription.latest_invoice.id})
    intent = payments.data[0].payment.payment_intent
    assert subscription.latest_invoice.confirmation_secret.client_secret.startswith(f"{intent}_secret_")
    await client.payment_intents.confirm_async(intent, {"payment_method": "pm_card_visa"})
    assert (await client.subscriptions.retrieve_async(subscription.id)).status == "active"


async def test_events_are_listed_and_sent_with_a_signature_of_the_platform(client: Any) -> None:
    async with receiving() as receiver:
        params = {"url": receiver.url, "enabled_events": ["payment_intent.succeeded"]}
        endpoint = await client.webhook_endpoints.create_async(params)
        paid = {"amount": 500, "currency": "usd", "payment_method": "pm_card_visa", "confirm": True}
        intent = await client.payment_intents.create_async(paid)
        await receiver.wait(1)
        event = sdk.Webhook.construct_event(receiver.bodies[0], receiver.signatures[0], endpoint.secret)
        assert (event.type, event.data.object["id"]) == ("payment_intent.succeeded", intent.id)
        listed = await client.events.list_async({"limit": 100, "created": {"gte": intent.created}})
        assert event.id in [event.id for event in listed.data]
        [first, *_] = pages = [
            event.id async for event in (await client.events.list_async({"limit": 1})).auto_paging_iter()
        ]
        assert len(pages) == len(set(pages)) == len(listed.data)
        assert (await client.events.retrieve_async(first)).id == first


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("unauthorized", sdk.AuthenticationError),
        ("rate_limited", sdk.RateLimitError),
        ("server_error", sdk.APIError),
        ("unavailable", sdk.APIError),
        ("out_of_quota", sdk.PermissionError),
        ("refuse", sdk.APIConnectionError),
    ],
)
async def test_faults_have_the_form_of_the_platform(
    open_sdk: Callable[..., sdk.StripeClient], fault: str, error: type[Exception]
) -> None:
    opened = open_sdk(key_of(fault=fault))
    with pytest.raises(error):
        await opened.v1.customers.create_async({})
    await opened._requestor._client.close_async()


async def test_missing_objects_have_the_form_of_the_platform(client: Any) -> None:
    with pytest.raises(sdk.InvalidRequestError) as missing:
        await client.payment_intents.retrieve_async("pi_unknown")
    assert (missing.value.http_status, missing.value.code) == (404, "resource_missing")
