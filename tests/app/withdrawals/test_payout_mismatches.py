"""What an operator has to know about payouts is in the report of mismatches, once."""

from datetime import UTC, datetime, timedelta
from typing import Any

from streams.wire.codec import rfc3339
from tests.app.callers import ask, work_off
from tests.app.operators import Operator
from tests.app.withdrawals.payer import Payer


async def reported(payer: Payer, uid: str) -> list[tuple[str, str]]:
    """The kind and the detail of each mismatch of the user's withdrawal."""
    _, reply = await payer.read(uid)
    found = await Operator(payer.server)("GET", "payments/mismatches?app=default&size=100")
    ours: list[dict[str, Any]] = [
        each for each in found.body["mismatches"] if each["subject"] == reply["withdraw"]["withdraw_id"]
    ]
    assert {each["platform"] for each in ours} <= {"payouts"}
    return [(each["kind"], each["detail"]) for each in ours]


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
    at = rfc3339(datetime.now(UTC) + timedelta(days=30))
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
