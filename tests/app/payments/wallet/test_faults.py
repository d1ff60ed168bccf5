"""A fault of the wallet platform is reported as `backend unavailable`, and nothing is done twice."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.app.payments.wallet.wallets import PRODUCTS, Wallet, error, put
from vendors.sandbox.faults import Fault, key_of

FAULTS = [
    {"fault": fault}
    for fault in (
        Fault.REFUSE,
        Fault.UNAUTHORIZED,
        Fault.RATE_LIMITED,
        Fault.OUT_OF_QUOTA,
        Fault.SERVER_ERROR,
        Fault.UNAVAILABLE,
        Fault.WRONG_CONTENT_TYPE,
        Fault.REDIRECT,
        Fault.MALFORMED_FRAME,
        Fault.EMPTY_ANSWER,
        Fault.HUGE_ANSWER,
    )
] + [{"fault": Fault.CUT_MID_STREAM, "position": "before"}, {"fault": Fault.CUT_MID_STREAM, "position": "after"}]
Request = Callable[[Wallet, str, str], Awaitable[tuple[int, Any]]]
REQUESTS: dict[str, Request] = {
    "create_order": lambda wallet, _, __: wallet.post("walletpay/create", {"product_id": "coins"}),
    "capture": lambda wallet, order, _: wallet.capture(order),
    "sync_order": lambda wallet, order, _: wallet.get(f"walletpay/sync/{order}"),
    "fetch_order": lambda wallet, order, _: wallet.get(f"walletpay/{order}/fetch"),
    "subscribe": lambda wallet, _, __: wallet.post("walletpay_sub", {"product_id": "other"}),
    "sync": lambda wallet, _, sub: wallet.sync(sub),
    "deprecated": lambda wallet, _, sub: wallet.get(f"walletpay_sub/{sub}"),
    "fetch": lambda wallet, _, sub: wallet.get(f"walletpay_sub/{sub}/fetch"),
    "upgrade": lambda wallet, _, sub: wallet.upgrade(sub),
    "sync_upgrade": lambda wallet, _, sub: wallet.get(f"walletpay_sub/{sub}/sync_upgrade"),
}
MAY_SUCCEED = {Fault.HUGE_ANSWER, Fault.WRONG_CONTENT_TYPE, Fault.CUT_MID_STREAM, Fault.EMPTY_ANSWER}
"""Faults that some answers hide: PayPal's errors are not read, and padding is ignored."""


async def prepared(wallet: Wallet) -> tuple[str, str]:
    """The ids of an approved order and of an active subscription. The user has none to `other`."""
    await put(wallet.server, "products", "other", PRODUCTS["month"])
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    return order["id"], await wallet.subscribed()


@pytest.mark.parametrize("options", FAULTS, ids=lambda options: "-".join(map(str, options.values())))
async def test_each_fault_of_the_platform_is_one_of_the_backend(wallet: Wallet, options: dict[str, Any]) -> None:
    order_id, sub_id = await prepared(wallet)
    expected = {(400, "backend unavailable")}
    if options["fault"] is Fault.UNAUTHORIZED:
        expected.add((422, "config_invalid"))
    breaker = {"min_calls": 1_000_000}
    for name, request in REQUESTS.items():
        await wallet.configure(client_secret=key_of(**options, name=name, retry_after_s=0.01), breaker=breaker)
        status, answer = await request(wallet, order_id, sub_id)
        if status == 200 and options["fault"] in MAY_SUCCEED:
            continue
        assert error((status, answer)) in expected, (name, answer)
        assert "sandbox" not in answer["error"]["message"]
    await wallet.configure(client_secret="sandbox")
    assert (await wallet.capture(order_id))[1]["walletpay_order"]["status"] == "COMPLETED"
    assert (await wallet.sync(sub_id))[1]["walletpay_sub"]["status"] == "ACTIVE"
    assert sorted(await wallet.kinds()) == ["grant", "grant"]


async def test_a_secret_that_the_platform_does_not_accept_is_a_fault_of_the_config(wallet: Wallet) -> None:
    order_id, sub_id = await prepared(wallet)
    await wallet.configure(client_secret="wrong")
    for request in REQUESTS.values():
        assert error(await request(wallet, order_id, sub_id)) == (422, "config_invalid")


async def test_a_config_that_was_removed_is_named(wallet: Wallet) -> None:
    order_id, sub_id = await prepared(wallet)
    await wallet.configure(base_url="{sandbox}/paypal")
    for request in REQUESTS.values():
        status, answer = await request(wallet, order_id, sub_id)
        assert error((status, answer)) == (422, "config_invalid")
        assert "walletpay Default: base_url" in answer["error"]["message"]


LOST = key_of(fault="cut_mid_stream", position="before")
"""The platform does what it is asked, and its answer is lost."""


async def test_a_capture_whose_answer_is_lost_charges_once(wallet: Wallet) -> None:
    order_id, _ = await prepared(wallet)
    await wallet.configure(client_secret=LOST)
    for _ in range(2):
        assert error(await wallet.capture(order_id)) == (400, "backend unavailable")
    await wallet.configure(client_secret="sandbox")
    assert (await wallet.capture(order_id))[1]["walletpay_order"]["status"] == "COMPLETED"
    assert len({call["key"] for call in wallet.calls("/capture")}) == 1
    assert (await wallet.assets())["coins"]["quantity"] == 100


async def test_an_upgrade_whose_answer_is_lost_makes_one_subscription(wallet: Wallet) -> None:
    sub_id = await wallet.subscribed()
    before = len(wallet.calls("/v1/billing/subscriptions"))
    await wallet.configure(client_secret=key_of(fault="server_error", retry_after_s=0.01, rate=0.5, seed=2))
    answers = [await wallet.upgrade(sub_id) for _ in range(12)]
    await wallet.configure(client_secret="sandbox")
    answers.append(await wallet.upgrade(sub_id))
    assert {status for status, _ in answers} == {200, 400}
    assert len({answer["walletpay_sub"]["id"] for status, answer in answers if status == 200}) == 1
    assert len({call["key"] for call in wallet.calls("/v1/billing/subscriptions")[before:]}) == 1


async def test_a_platform_whose_calls_fail_is_not_called_for_a_while(wallet: Wallet) -> None:
    order_id, _ = await prepared(wallet)
    breaker = {"min_calls": 2, "failure_ratio": 0.1}
    await wallet.configure(client_secret=key_of(fault="unavailable", retry_after_s=0.01), breaker=breaker)
    for _ in range(3):
        assert error(await wallet.get(f"walletpay/{order_id}/fetch")) == (400, "backend unavailable")
    status, answer = await wallet.get(f"walletpay/{order_id}/fetch")
    assert (status, "skipped" in answer["error"]["message"]) == (400, True)
    assert answer["error"]["extra"]["retryable"] is True


@pytest.mark.parametrize(
    ("secret", "header"),
    [
        (key_of(fault="rate_limited", retry_after_s=40), "40"),
        (key_of(fault="rate_limited", retry_after_s=2.4), "3"),
        (key_of(fault="server_error"), "5"),
        (key_of(fault="unavailable"), "5"),
        (key_of(fault="malformed_frame"), "5"),
        (key_of(fault="refuse"), "5"),
    ],
)
async def test_the_time_of_a_retry_is_that_of_the_platform_or_five_seconds(
    wallet: Wallet, secret: str, header: str
) -> None:
    await wallet.configure(client_secret=secret)
    session = {"X-Service-Session-Token": wallet.session}
    url = f"{wallet.server.url}/bp/asset/walletpay/create"
    async with wallet.server.http.post(url, json={"product_id": "coins"}, headers=session) as response:
        answer = await response.json()
    assert error((response.status, answer)) == (400, "backend unavailable")
    assert response.headers["Retry-After"] == header
    assert answer["error"]["extra"]["retryable"] is ("malformed" not in secret)
