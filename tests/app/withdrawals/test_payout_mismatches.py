"""What an operator has to know about payouts is in the report of mismatches, once."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from streams.wire.codec import rfc3339
from tests.app.callers import ask, work_off
from tests.app.operators import Operator
from tests.app.withdrawals.payer import Payer
from tests.app.withdrawals.unknown_payouts import settle
from tests.calendar.clock import utc_now
from vendors.sandbox.faults import key_of


async def reported(payer: Payer, uid: str) -> list[tuple[str, str]]:
    """The kind and the detail of each mismatch of the user's withdrawal."""
    _, reply = await payer.read(uid)
    found = await Operator(payer.server)("GET", "payments/mismatches?app=default&size=100")
    ours: list[dict[str, Any]] = [
        mismatch for mismatch in found.body["mismatches"] if mismatch["subject"] == reply["withdraw"]["withdraw_id"]
    ]
    assert {mismatch["platform"] for mismatch in ours} <= {"payouts"}
    return [(mismatch["kind"], mismatch["detail"]) for mismatch in ours]


async def ended(payer: Payer, receiver: str, status: str) -> tuple[str, str]:
    """A user whose withdrawal has ended, and the platform's id of its payout."""
    uid = await payer.user(receiver)
    assert (await payer.withdraw(uid))[0] == 200
    await work_off(payer.server.services)
    await payer.check()
    await work_off(payer.server.services)
    assert await payer.status(uid) == status
    assert await reported(payer, uid) == []
    [payout_id] = await payer.payouts_of(uid)
    return uid, payout_id


async def read_back_twice(payer: Payer, uid: str) -> None:
    for _ in range(2):
        await payer.read_back(uid)
        await work_off(payer.server.services)


async def test_a_payout_that_is_returned_is_reported(payer: Payer) -> None:
    uid, payout_id = await ended(payer, "payee", "WITHDRAW_SUCCESS")
    await payer.control("payout", payout_id=payout_id, status="REVERSED")
    await read_back_twice(payer, uid)
    assert await reported(payer, uid) == [
        ("payout_returned", f"12.30 USD, {payout_id}: withdraw.platform_rejected: REVERSED")
    ]
    assert await payer.status(uid) == "WITHDRAW_SUCCESS"


async def test_a_payout_that_is_paid_after_it_was_counted_as_failed_is_reported(payer: Payer) -> None:
    uid, payout_id = await ended(payer, "locked", "WITHDRAW_FAILED")
    await payer.control("payout", payout_id=payout_id, status="SUCCESS")
    await read_back_twice(payer, uid)
    assert await reported(payer, uid) == [("payout_paid_after_failure", f"12.30 USD, {payout_id}")]
    assert await payer.status(uid) == "WITHDRAW_FAILED"
    assert await payer.entries(uid) == ["reserve", "void"]


async def test_a_payout_that_the_platform_has_forgotten_is_reported_and_not_made_again(payer: Payer) -> None:
    await payer.configure(secret="sandbox,fault=unavailable")
    uid = await payer.user()
    assert (await payer.withdraw(uid))[0] == 200
    await work_off(payer.server.services)
    assert await reported(payer, uid) == []
    at = rfc3339(utc_now() + timedelta(days=30))
    assert (await ask(payer.server, "POST", "/dev/clock", json={"app": "default", "at": at}))[0] == 200
    await payer.configure()
    try:
        for _ in range(2):
            await payer.check()
            await work_off(payer.server.services)
        assert await reported(payer, uid) == [("payout_unknown", "12.30 USD")]
        assert await payer.status(uid) == "WITHDRAW_START"
        assert await payer.payouts_of(uid) == []
    finally:
        await payer.server.services.clock.move("default", offset_s=0)


async def test_a_payout_whose_result_is_unknown_is_never_asked_of_another_account(payer: Payer) -> None:
    await payer.configure(secret=key_of(name=uuid4().hex, fault="cut_mid_stream", position="before"))
    uid = await payer.user("slow")
    assert (await payer.withdraw(uid))[0] == 200
    await work_off(payer.server.services)
    first, payer.client_id = payer.client_id, uuid4().hex
    await payer.configure()
    for _ in range(2):
        await payer.check()
        await work_off(payer.server.services)
    assert await payouts_at(payer, payer.client_id) == []
    assert len(await payouts_at(payer, first)) == 1
    asked = f"{first} at {payer.sandbox_url}/paypal"
    assert await reported(payer, uid) == [("payout_unknown", f"12.30 USD, asked: {asked}")]
    assert await payer.status(uid) == "WITHDRAW_START"
    found = await Operator(payer.server)("GET", "withdrawals?app=default&state=unknown")
    assert uid in {withdrawal["user_id"] for withdrawal in found.body["withdrawals"]}


async def test_a_payout_that_another_account_has_accepted_is_left_to_operators_until_it_can_be_read(
    payer: Payer,
) -> None:
    uid = await payer.user("slow")
    _, reply = await payer.withdraw(uid)
    withdrawal_id = reply["withdraw"]["withdraw_id"]
    await work_off(payer.server.services)
    [payout_id] = await payer.payouts_of(uid)
    first, payer.client_id = payer.client_id, uuid4().hex
    await payer.configure()
    for secret in ("any", "sandbox,fault=unavailable"):
        await payer.configure(secret=secret)
        await payer.check()
        await work_off(payer.server.services)
        assert await state(payer, withdrawal_id) == "unknown"
    asked = f"{first} at {payer.sandbox_url}/paypal"
    assert await reported(payer, uid) == [("payout_unknown", f"12.30 USD, {payout_id}, asked: {asked}")]
    payer.client_id = first
    await payer.configure()
    await payer.check()
    await work_off(payer.server.services)
    assert await state(payer, withdrawal_id) == "in_progress"
    await payer.control("payout", payout_id=payout_id, status="SUCCESS")
    await payer.check()
    await work_off(payer.server.services)
    assert await payer.status(uid) == "WITHDRAW_SUCCESS"
    assert await payer.entries(uid) == ["reserve", "pay"]


async def test_a_payout_that_another_account_has_accepted_can_be_settled(payer: Payer) -> None:
    uid = await payer.user("slow")
    _, reply = await payer.withdraw(uid)
    withdrawal_id = reply["withdraw"]["withdraw_id"]
    await work_off(payer.server.services)
    payer.client_id = uuid4().hex
    await payer.configure()
    await payer.check()
    await work_off(payer.server.services)
    settled = await settle(payer, withdrawal_id, "paid")
    assert (settled.status, settled.body["state"]) == (200, "paid")
    assert await payer.status(uid) == "WITHDRAW_SUCCESS"
    assert await payer.entries(uid) == ["reserve", "pay"]


async def test_an_account_that_paypal_has_not_accepted_can_be_corrected(payer: Payer) -> None:
    await payer.configure(secret="wrong")
    uid = await payer.user()
    assert (await payer.withdraw(uid))[0] == 200
    await work_off(payer.server.services)
    payer.client_id = uuid4().hex
    await payer.configure()
    for _ in range(2):
        await payer.check()
        await work_off(payer.server.services)
    assert await payer.status(uid) == "WITHDRAW_SUCCESS"


async def state(payer: Payer, withdrawal_id: str) -> str:
    """The state of a withdrawal as operators see it."""
    found = await Operator(payer.server)("GET", "withdrawals?app=default&size=100")
    [row] = [withdrawal for withdrawal in found.body["withdrawals"] if withdrawal["withdrawal_id"] == withdrawal_id]
    return str(row["state"])


async def payouts_at(payer: Payer, client_id: str) -> list[Any]:
    """The payouts in the books of a merchant."""
    url, query = f"{payer.sandbox_url}/paypal/_control/books", {"client_id": client_id}
    async with payer.server.http.get(url, params=query) as response:
        found: list[Any] = (await response.json())["payouts"]
    return found
