"""An operator refunds payments by wallet: each exactly once, and with the effects of a refund that is reported."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from storage.assets.differences import find_differences
from tests.app.callers import work_off
from tests.app.operators import AdminResponse, Operator
from tests.app.payments.killed_requests import kill_request
from tests.app.payments.reports import add_sink, brief, reported
from tests.app.payments.wallet.deliveries import PATH
from tests.app.payments.wallet.wallets import WEBHOOK, Wallet
from tests.calendar.clock import utc_now
from tests.waiting import until
from vendors.sandbox.faults import key_of


@pytest.fixture(autouse=True)
async def _explained(wallet: Wallet) -> AsyncIterator[None]:
    yield
    assert [difference async for difference in find_differences(wallet.server.services.database)] == []


async def bought(wallet: Wallet) -> str:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    assert (await wallet.capture(order["id"]))[0] == 200
    return str(order["id"])


async def refund(
    wallet: Wallet, order: str, body: dict[str, Any] | None = None, *, key: str | None = None
) -> AdminResponse:
    path = f"users/default/{wallet.uid}/orders/{order}/refund"
    headers = {"X-Parley-Reason": "Asked for it", "Idempotency-Key": key or uuid4().hex}
    return await Operator(wallet.server)("POST", path, body or {}, **headers)


async def left(wallet: Wallet, order: str) -> tuple[int, int]:
    found = await Operator(wallet.server)("GET", f"users/default/{wallet.uid}/orders/{order}/refund")
    assert found.status == 200, found.body
    return found.body["paid"], found.body["left"]


async def run_jobs(wallet: Wallet) -> None:
    """Run the jobs that wait, also those for later."""
    await wallet.rows("update procrastinate_jobs set scheduled_at = null where status = 'todo' returning 1")
    await work_off(wallet.server.services)


async def rows(wallet: Wallet, path: str) -> list[dict[str, Any]]:
    """The entries of a list of payments."""
    found = await Operator(wallet.server)("GET", f"payments/{path}")
    assert found.status == 200, found.body
    listed: list[dict[str, Any]] = found.body[path.partition("?")[0]]
    return listed


async def coins(wallet: Wallet) -> int:
    return int((await wallet.assets())["coins"]["quantity"])


async def made(wallet: Wallet) -> list[int]:
    return [refund["amount"] for refund in (await wallet.books())["refunds"]]


async def test_a_whole_refund_takes_back_what_was_granted_and_is_reported_and_audited(wallet: Wallet) -> None:
    await add_sink(wallet.server)
    order = await bought(wallet)
    assert await left(wallet, order) == (199, 199)
    answer = await refund(wallet, order)
    assert answer.status == 200, answer.body
    assert (answer.body["state"], answer.body["amount"], answer.body["currency"]) == ("made", 199, "USD")
    assert (await coins(wallet), await wallet.kinds(), await made(wallet)) == (0, ["grant", "refund"], [199])
    assert await left(wallet, order) == (199, 0)
    payment = answer.body["payment_id"]
    assert brief(await reported(wallet.server, wallet.uid)) == [("charge", payment, 199), ("refund", payment, 199)]
    audited = await Operator(wallet.server)("GET", "audit?action=order.refund&size=1")
    [change] = audited.body["changes"]
    assert (change["reason"], change["after"]["amount"]) == ("Asked for it", "1.99 USD")
    [listed] = await rows(wallet, "refunds?state=made")
    assert (listed["refund_id"], listed["order_id"]) == (answer.body["platform_refund_id"], order)
    assert (listed["user_id"], listed["amount"], listed["by"]) == (wallet.uid, 199, "operator")
    today = wallet.server.services.clock.now("default").date().isoformat()
    assert await rows(wallet, "sales") == [
        {"day": today, "currency": "USD", "payments": 1, "amount": 199, "refunds": 1, "refunded": 199}
    ]
    assert await rows(wallet, f"sales?first={today}&app=none") == []
    nothing = await refund(wallet, order)
    assert nothing.error == (409, "invalid_operation: nothing of 1.99 USD is left to refund")


async def test_parts_take_nothing_until_all_is_refunded(wallet: Wallet) -> None:
    order = await bought(wallet)
    assert (await refund(wallet, order, {"amount": 100})).body["state"] == "made"
    assert (await coins(wallet), await left(wallet, order)) == (100, (199, 99))
    too_much = await refund(wallet, order, {"amount": 100})
    assert too_much.error == (
        400, "invalid_parameter: amount must be at most 99, which is what is left of the payment",
    )  # fmt: skip
    assert (await refund(wallet, order)).body["amount"] == 99
    assert (await coins(wallet), await made(wallet)) == (0, [100, 99])


async def test_a_repeated_key_refunds_once_and_another_amount_is_refused(wallet: Wallet) -> None:
    order = await bought(wallet)
    answers = await asyncio.gather(*(refund(wallet, order, {"amount": 50}, key="one") for _ in range(4)))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body["refund_id"] for answer in answers}) == 1
    again = await refund(wallet, order, {"amount": 50}, key="one")
    assert (again.body["state"], await made(wallet)) == ("made", [50])
    assert (await refund(wallet, order, {"amount": 51}, key="one")).status == 409


async def test_two_operators_at_once_refund_no_more_than_was_paid(wallet: Wallet) -> None:
    order = await bought(wallet)
    answers = await asyncio.gather(*(refund(wallet, order, {"amount": 150}) for _ in range(3)))
    assert sorted(answer.status for answer in answers) == [200, 400, 400]
    assert (await made(wallet), await left(wallet, order)) == ([150], (199, 49))


async def test_a_webhook_before_the_answer_counts_once(wallet: Wallet) -> None:
    await add_sink(wallet.server)
    order = await bought(wallet)
    await wallet.control("webhook", id=WEBHOOK, url=wallet.server.url + PATH)

    async def has_webhook() -> bool:
        return bool(
            await wallet.rows("select 1 from webhooks where position('CAPTURE.REFUNDED'::bytea in body) > 0")
        )

    await wallet.configure(client_secret=key_of(name="early", fault="cut_mid_stream", position="before", skip=1))
    answer = await refund(wallet, order, key="early")
    await wallet.configure(client_secret="sandbox")
    assert (answer.status, answer.body["state"]) == (200, "pending"), answer.body
    await until(has_webhook)
    await work_off(wallet.server.services)
    assert (await coins(wallet), await wallet.kinds()) == (0, ["grant", "refund"])
    assert (await refund(wallet, order, key="early")).body["state"] == "made"
    assert (await made(wallet), await wallet.kinds()) == ([199], ["grant", "refund"])
    assert [kind for kind, *_ in brief(await reported(wallet.server, wallet.uid))] == ["charge", "refund"]


async def test_a_refund_whose_request_is_killed_is_made_once_by_the_job(wallet: Wallet) -> None:
    order = await bought(wallet)

    async def press() -> None:
        await refund(wallet, order, key="killed")

    await wallet.configure(client_secret=key_of(delay_ms=200))
    await kill_request(wallet, press(), path="/refund")
    await wallet.configure(client_secret="sandbox")
    assert (await coins(wallet), await wallet.kinds()) == (100, ["grant"])
    await run_jobs(wallet)
    assert (await coins(wallet), await wallet.kinds(), await made(wallet)) == (0, ["grant", "refund"], [199])


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED"])
async def test_a_refund_that_the_platform_accepts_counts_once_it_is_made(wallet: Wallet, status: str) -> None:
    order = await bought(wallet)
    await wallet.control("refund_pending", pending=True)
    answer = await refund(wallet, order)
    assert (answer.body["state"], await coins(wallet), await left(wallet, order)) == ("accepted", 100, (199, 0))
    await wallet.control("turn_refund", refund_id=answer.body["platform_refund_id"], status=status)
    await run_jobs(wallet)
    is_made = status == "COMPLETED"
    assert (await coins(wallet), await left(wallet, order)) == ((0, (199, 0)) if is_made else (100, (199, 199)))
    failed = [mismatch["subject"] for mismatch in await wallet.mismatches("refund_failed")]
    assert (answer.body["payment_id"] in failed) is not is_made


async def test_what_the_platform_refuses_is_a_conflict_and_can_be_refunded_again(wallet: Wallet) -> None:
    order = await bought(wallet)
    await wallet.control("clock", at=(utc_now() + timedelta(days=181)).isoformat())
    refused = await refund(wallet, order)
    assert refused.error == (
        409, "invalid_operation: the platform has refused the refund: REFUND_TIME_LIMIT_EXCEEDED",
    )  # fmt: skip
    await wallet.control("clock", at=None)
    assert (await coins(wallet), await left(wallet, order)) == (100, (199, 199))
    [failed] = await rows(wallet, "refunds?state=failed")
    assert (failed["order_id"], failed["problem"]) == (order, "REFUND_TIME_LIMIT_EXCEEDED")
    assert (await refund(wallet, order)).body["state"] == "made"


async def test_the_last_period_of_a_subscription_is_refunded_and_ends(wallet: Wallet) -> None:
    sub = await wallet.subscribed()
    [first] = [payment["id"] for payment in (await wallet.books())["payments"]]
    await wallet.renew(sub)
    await wallet.sync(sub)
    assert (await refund(wallet, sub, {"payment": first})).body["payment_id"] == first
    assert (await wallet.assets())["pro"]["valid_seconds"] > 0
    last = await refund(wallet, sub)
    assert (last.body["state"], last.body["payment_id"] != first) == ("made", True)
    assert (await wallet.assets())["pro"]["is_refund"]
    assert (await refund(wallet, sub, {"payment": "none"})).status == 404


async def test_what_cannot_be_refunded_says_why(wallet: Wallet) -> None:
    order = await wallet.order()
    unpaid = await refund(wallet, order["id"])
    assert unpaid.error == (409, "invalid_operation: the order was not paid")
    assert (await refund(wallet, "none")).status == 404
    assert (await refund(wallet, order["id"], {"amount": 0})).error[1].startswith("invalid_parameter: amount")
    path = f"users/default/{wallet.uid}/orders/{order['id']}/refund"
    without_key = await Operator(wallet.server)("POST", path, {}, X_Parley_Reason="r")
    assert without_key.error == (400, "invalid_parameter: Idempotency-Key is required")
    without_reason = await Operator(wallet.server)("POST", path, {}, Idempotency_Key="k", X_Parley_Reason="")
    assert without_reason.error == (400, "invalid_parameter: X-Parley-Reason is required")


async def test_disputes_and_refunds_are_listed_in_pages(wallet: Wallet) -> None:
    order = await bought(wallet)
    [payment] = [payment["id"] for payment in (await wallet.books())["payments"]]
    await wallet.control("dispute", payment_id=payment, value="1.00")
    await wallet.travel(wallet.server.services.clock.now("default") + timedelta(days=2))
    await wallet.reconcile()
    [dispute] = await rows(wallet, "disputes?state=open&platform=walletpay&app=default")
    assert (dispute["order_id"], dispute["payment_id"], dispute["amount"]) == (order, payment, 100)
    assert dispute["status"] == "WAITING_FOR_SELLER_RESPONSE"
    assert datetime.fromisoformat(dispute["evidence_due_at"]) > datetime.fromisoformat(dispute["opened_at"])
    assert await left(wallet, order) == (199, 99)
    await wallet.control("resolve_dispute", dispute_id=dispute["dispute_id"], outcome="RESOLVED_SELLER_FAVOUR")
    await wallet.travel(wallet.server.services.clock.now("default") + timedelta(days=2))
    await wallet.reconcile()
    assert [(await rows(wallet, f"disputes?state={state}")) != [] for state in ("open", "won")] == [False, True]
    for amount in (1, 2, 3):
        assert (await refund(wallet, order, {"amount": amount})).status == 200
    path, found = "payments/refunds?size=2", []
    while path:
        page = (await Operator(wallet.server)("GET", path)).body
        found += [row["amount"] for row in page["refunds"]]
        path = f"payments/refunds?size=2&before={page['next']}" if "next" in page else ""
    assert sorted(found) == [1, 2, 3]
    assert (await Operator(wallet.server)("GET", "payments/refunds?before=x")).status == 400
    assert (await Operator(wallet.server)("GET", "payments/sales?first=2020-01-01&last=2021-06-01")).status == 400
