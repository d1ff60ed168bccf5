"""Calls to PayPal: access tokens, keys of calls that move money, errors and faults."""

import asyncio

import pytest
from pydantic import SecretStr

from streams.wire.errors import BackendUnavailable, ConfigInvalid
from tests.vendors.payments.paypal.calls import Merchant, merchant
from vendors.account import Account
from vendors.calls.gate import Gate, GatePolicy
from vendors.errors import Garbled, Refused, Unreachable, VendorError
from vendors.http.transport import VendorHttp
from vendors.payments.paypal.client import PayPal
from vendors.payments.paypal.errors import PayPalRefused, refused
from vendors.sandbox.faults import Fault, KeyOptions, key_of
from vendors.sandbox.payments.paypal.plans import MONTHLY
from vendors.sandbox.server import Running


async def test_one_token_serves_concurrent_calls_and_later_clients(http: VendorHttp, shop: Merchant):
    await asyncio.gather(*(shop.paypal.plan(MONTHLY) for _ in range(5)))
    account = Account("Other", "walletpay", f"{shop.sandbox.url}/paypal", SecretStr("any"))
    other = PayPal(http, account, Gate("tests", GatePolicy()), client_id=shop.client_id)
    await other.plan(MONTHLY)

    assert len(shop.calls("token")) == 1


async def test_a_revoked_token_is_renewed_once_and_the_call_has_the_same_key(shop: Merchant):
    await shop.order("first")
    await shop.control("revoke_tokens")

    order = await shop.order("second")

    assert (await shop.paypal.order(order.id)).status == "CREATED"
    assert len(shop.calls("token")) == 2


async def test_a_token_that_is_never_accepted_ends_in_an_error(http: VendorHttp, sandbox: Running):
    async with merchant(http, sandbox, secret=key_of(fault=Fault.UNAUTHORIZED)) as shop:
        with pytest.raises(PayPalRefused) as raised:
            await shop.paypal.plan(MONTHLY)

        assert raised.value.vendor_status == 401
        assert len(shop.calls("token")) == 2
        assert len(shop.calls("plan")) == 2


async def test_a_wrong_secret_is_a_fault_of_the_config(http: VendorHttp, sandbox: Running):
    async with merchant(http, sandbox, secret="wrong") as shop:
        with pytest.raises(ConfigInvalid, match="walletpay Default: client_id or client_secret"):
            await shop.paypal.plan(MONTHLY)


async def test_a_failing_login_is_not_a_fault_of_the_config(http: VendorHttp, sandbox: Running):
    sandbox.sandbox.switches["paypal_login"] = KeyOptions(fault=Fault.UNAVAILABLE, retry_after_s=9)
    async with merchant(http, sandbox) as shop:
        with pytest.raises(PayPalRefused) as raised:
            await shop.paypal.plan(MONTHLY)

    assert (raised.value.vendor_status, raised.value.retryable) == (503, True)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.REFUSE, Unreachable),
        (Fault.RATE_LIMITED, PayPalRefused),
        (Fault.OUT_OF_QUOTA, PayPalRefused),
        (Fault.SERVER_ERROR, PayPalRefused),
        (Fault.UNAVAILABLE, PayPalRefused),
        (Fault.WRONG_CONTENT_TYPE, Garbled),
        (Fault.REDIRECT, Refused),
        (Fault.CUT_MID_STREAM, VendorError),
        (Fault.MALFORMED_FRAME, Garbled),
        (Fault.ERROR_INSIDE_200, Garbled),
        (Fault.EMPTY_ANSWER, Garbled),
    ],
)
async def test_each_fault_is_an_unavailable_backend(
    http: VendorHttp, sandbox: Running, fault: Fault, error: type[VendorError]
):
    secret = key_of(fault=fault, position=0, retry_after_s=0)
    async with merchant(http, sandbox, secret=secret) as shop:
        with pytest.raises(error) as failed:
            await shop.order()

    assert isinstance(failed.value, BackendUnavailable)


async def test_a_call_that_moves_money_is_sent_again_with_its_key(http: VendorHttp, sandbox: Running):
    secret = key_of(fault=Fault.UNAVAILABLE, times=1, retry_after_s=0)
    async with merchant(http, sandbox, secret=secret) as shop:
        order = await shop.order("row-7:create")

        assert order.status == "CREATED"
        assert [entry.how for entry in shop.calls("order")] == ["fault", "done"]
        assert shop.calls("order")[1].asked["key"] == "row-7:create"


async def test_a_repeated_key_gets_the_first_object_until_it_is_forgotten(shop: Merchant):
    first = await shop.order("row-7:create")
    again = await shop.order("row-7:create")
    await shop.move_clock(0.26)

    assert again == first
    assert (await shop.order("row-7:create")).id != first.id


async def test_errors_name_the_issue_and_no_values(shop: Merchant):
    order = await shop.order()

    with pytest.raises(PayPalRefused) as raised:
        await shop.paypal.capture_order("k", order.id)

    error = raised.value
    assert (error.issue, error.name) == ("ORDER_NOT_APPROVED", "UNPROCESSABLE_ENTITY")
    assert (error.vendor_status, error.retryable, error.not_found) == (422, False, False)
    assert error.what == "walletpay answered 422: ORDER_NOT_APPROVED"
    assert error.extra["code"] == "ORDER_NOT_APPROVED"


@pytest.mark.parametrize("order_id", ["5O190127TN364715T", "../../v1/billing/plans", "a/b?c#d", "ü", "%2e%2e"])
async def test_unknown_ids_are_not_found_and_cannot_change_the_path(shop: Merchant, order_id: str):
    with pytest.raises(PayPalRefused) as raised:
        await shop.paypal.order(order_id)

    assert raised.value.not_found


async def test_objects_of_other_merchants_are_not_found(http: VendorHttp, sandbox: Running, shop: Merchant):
    order = await shop.order()

    async with merchant(http, sandbox) as other:
        with pytest.raises(PayPalRefused) as raised:
            await other.paypal.order(order.id)

    assert raised.value.not_found


def answer(body: bytes) -> Refused:
    error = Refused("walletpay", "answered 409", vendor_status=409)
    error.body = body
    return error


@pytest.mark.parametrize(
    ("body", "issue"),
    [
        (b"", ""),
        (b"<html>", ""),
        (b"[]", ""),
        (b'{"details": [{"issue": 7}]}', ""),
        (b'{"name": "INVALID_REQUEST"}', "INVALID_REQUEST"),
        (b'{"error": "invalid_client"}', "invalid_client"),
        (b'{"name": "A", "details": [{"issue": "B", "value": "secret"}, {"issue": "C"}]}', "B"),
    ],
)
def test_any_body_of_an_error_is_read(body: bytes, issue: str):
    found = refused(answer(body))

    assert found.issue == issue
    assert "secret" not in found.what + str(found.extra)


async def test_a_key_is_required(shop: Merchant):
    with pytest.raises(ValueError, match="key must not be empty"):
        await shop.paypal.post("", "/v2/checkout/orders", {}, type(await shop.order()))


def test_what_is_in_progress_may_be_sent_again():
    body = b'{"name": "RESOURCE_CONFLICT", "details": [{"issue": "PREVIOUS_REQUEST_IN_PROGRESS"}]}'

    assert refused(answer(body)).retryable
