"""PayPal's orders: creation, approval on the sandbox's page, capture and refunds."""

import asyncio

import pytest

from streams.wire.ids import new_id
from streams.wire.money import Money
from tests.vendors.payments.paypal.calls import CANCEL, RETURN, Merchant
from vendors.payments.paypal.errors import PayPalRefused

USD = "USD"


async def issue_of_capture(shop: Merchant, order_id: str) -> str:
    with pytest.raises(PayPalRefused) as raised:
        await shop.paypal.capture_order(new_id(), order_id)
    return raised.value.issue


async def test_an_order_is_created_approved_and_captured(shop: Merchant):
    order = await shop.order()

    assert (order.status, order.amount, order.custom_id) == ("CREATED", Money(199, USD), "user-7")
    assert await issue_of_capture(shop, order.id) == "ORDER_NOT_APPROVED"

    page, brought = await shop.approve(order.approve_url)

    assert page == RETURN.partition("?")[0]
    assert brought == {"from": "wallet", "token": order.id, "PayerID": "2J6QB8YJQSJRJ"}
    approved = await shop.paypal.order(order.id)
    assert (approved.status, approved.approve_url) == ("APPROVED", "")

    captured = await shop.paypal.capture_order("row:capture", order.id)

    (capture,) = captured.captures
    assert (captured.status, captured.approve_url) == ("COMPLETED", "")
    assert (capture.status, capture.amount, capture.custom_id) == ("COMPLETED", Money(199, USD), "user-7")
    found = await shop.paypal.capture(capture.id)
    assert (found.id, found.status, found.order_id) == (capture.id, "COMPLETED", order.id)


async def test_a_capture_is_repeated_by_its_key_and_refused_by_another(shop: Merchant):
    order = await shop.approved_order()

    first = await shop.paypal.capture_order("row:capture", order.id)

    assert await shop.paypal.capture_order("row:capture", order.id) == first
    assert await issue_of_capture(shop, order.id) == "ORDER_ALREADY_CAPTURED"
    assert (await shop.paypal.order(order.id)).captures == first.captures


async def test_a_cancelled_approval_leaves_the_order_as_it_was(shop: Merchant):
    order = await shop.order()

    page, brought = await shop.approve(order.approve_url, action="cancel")

    assert (page, brought) == (CANCEL, {"token": order.id})
    assert await shop.paypal.order(order.id) == order


async def test_a_declined_instrument_sends_the_payer_back(shop: Merchant):
    order = await shop.approved_order(fault="decline")

    assert await issue_of_capture(shop, order.id) == "INSTRUMENT_DECLINED"
    again = await shop.paypal.order(order.id)
    assert again.status == "CREATED"

    await shop.approve(again.approve_url)
    assert (await shop.paypal.capture_order(new_id(), order.id)).captures[0].status == "COMPLETED"


async def test_an_order_is_completed_while_its_capture_is_pending(shop: Merchant):
    order = await shop.approved_order(fault="pending")

    captured = await shop.paypal.capture_order(new_id(), order.id)

    (capture,) = captured.captures
    assert (captured.status, capture.status, capture.status_details.reason) == (
        "COMPLETED",
        "PENDING",
        "PENDING_REVIEW",
    )
    await shop.control("settle", capture_id=capture.id, state="completed")
    assert (await shop.paypal.order(order.id)).captures[0].status == "COMPLETED"


async def test_a_charge_whose_answer_is_lost_is_found_by_a_read(shop: Merchant):
    order = await shop.approved_order(fault="timeout")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await shop.paypal.capture_order("row:capture", order.id)

    (capture,) = (await shop.paypal.order(order.id)).captures
    assert capture.status == "COMPLETED"
    assert (await shop.paypal.capture_order("row:capture", order.id)).captures == [capture]


async def test_an_order_that_nobody_approves_expires(shop: Merchant):
    order = await shop.order()
    await shop.move_clock(0.13)

    with pytest.raises(PayPalRefused) as raised:
        await shop.paypal.order(order.id)

    assert raised.value.not_found


@pytest.mark.parametrize("amount", [Money(500, "JPY"), Money(50_000, "HUF"), Money(1, "EUR")])
async def test_currencies_have_as_many_decimals_as_paypal_wants(shop: Merchant, amount: Money):
    order = await shop.order(amount=amount)

    assert (await shop.paypal.order(order.id)).amount == amount


async def test_an_amount_that_paypal_cannot_pay_is_not_sent(shop: Merchant):
    with pytest.raises(ValueError, match="more decimals"):
        await shop.order(amount=Money(50_050, "HUF"))

    assert shop.calls("order") == []


async def test_a_capture_is_refunded_in_parts_up_to_its_amount(shop: Merchant):
    order = await shop.approved_order()
    (capture,) = (await shop.paypal.capture_order(new_id(), order.id)).captures

    first = await shop.paypal.refund_capture("row:refund", capture.id, Money(50, USD))
    repeated = await shop.paypal.refund_capture("row:refund", capture.id, Money(50, USD))

    assert repeated == first
    assert (first.status, first.amount, first.capture_id, first.sale_id) == (
        "COMPLETED",
        Money(50, USD),
        capture.id,
        "",
    )
    assert await shop.paypal.capture_refund(first.id) == first
    assert (await shop.paypal.order(order.id)).refunds == [first]
    assert (await shop.paypal.capture(capture.id)).status == "PARTIALLY_REFUNDED"

    with pytest.raises(PayPalRefused, match="REFUND_AMOUNT_EXCEEDED"):
        await shop.paypal.refund_capture(new_id(), capture.id, Money(150, USD))
    await shop.paypal.refund_capture(new_id(), capture.id, Money(149, USD))
    with pytest.raises(PayPalRefused, match="CAPTURE_FULLY_REFUNDED"):
        await shop.paypal.refund_capture(new_id(), capture.id, Money(1, USD))
    assert (await shop.paypal.capture(capture.id)).status == "REFUNDED"


async def test_a_reversed_capture_is_refunded(shop: Merchant):
    order = await shop.approved_order()
    (capture,) = (await shop.paypal.capture_order(new_id(), order.id)).captures

    await shop.control("reverse", payment_id=capture.id)

    assert (await shop.paypal.capture(capture.id)).status == "REFUNDED"


async def test_the_page_escapes_what_the_merchant_has_written(shop: Merchant):
    await shop.order()
    body = {
        "intent": "CAPTURE",
        "purchase_units": [
            {"amount": {"currency_code": USD, "value": "1.00"}, "description": "<script>alert(1)</script>"}
        ],
        "application_context": {"brand_name": '"><b>', "return_url": "javascript:alert(1)"},
    }
    order = await shop.paypal.post(new_id(), "/v2/checkout/orders", body, type(await shop.order()))

    async with shop.browser.get(order.approve_url) as response:
        page = await response.text()
    async with shop.browser.post(order.approve_url, data={"action": "approve"}) as response:
        assert "Location" not in response.headers

    assert "<script>" not in page
    assert '"><b>' not in page
    assert "1.00 USD" in page
    assert "Time out after charge" in page
