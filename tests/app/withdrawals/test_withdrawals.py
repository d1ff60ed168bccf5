"""Withdrawals are reserved once, submitted once under one id, and read back until the platform has settled them."""

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from streams.wire.codec import from_rfc3339, rfc3339
from tests.app.callers import ask, token, work_off
from tests.app.operators import Operator
from tests.app.withdrawals.payer import Payer
from tests.calendar.clock import utc_now
from tests.calendar.hard_instants import walk
from tests.waiting import until

ZERO = "0001-01-01T00:00:00Z"


async def test_a_withdrawal_is_paid_to_the_proven_address_of_the_user(payer: Payer) -> None:
    uid = await payer.user()
    status, reply = await payer.withdraw(uid)
    assert status == 200, reply
    withdraw = reply["withdraw"]
    assert (withdraw["status"], withdraw["reason"], withdraw["withdraw_time"]) == ("WITHDRAW_START", "", ZERO)
    assert (withdraw["cash_num"], withdraw["platform"], withdraw["merchant_id"]) == (12.3, "paypal", "m-1")
    assert (withdraw["user_id"], withdraw["created_time"]) == (uid, withdraw["updated_time"])
    assert withdraw["withdraw_id"] != f"w{uid}"
    async with payer.working():
        await until(lambda: _is(payer, uid, "WITHDRAW_SUCCESS"))
    for any_id in (withdraw["withdraw_id"], f"w{uid}", None):
        status, reply = await payer.read(uid, any_id)
        assert status == 200
        assert reply["withdraw"]["withdraw_time"] > ZERO
    assert await payer.entries(uid) == ["reserve", "pay"]


async def _is(payer: Payer, uid: str, status: str) -> bool:
    """Whether the newest withdrawal of a user has a status, after another round of checks."""
    await payer.check()
    return await payer.status(uid) == status


@pytest.mark.parametrize(
    ("receiver", "reason"),
    [
        ("locked", "withdraw.account_invalid: RECEIVER_ACCOUNT_LOCKED"),
        ("country", "withdraw.account_invalid: RECEIVER_COUNTRY_NOT_ALLOWED"),
        ("returned", "withdraw.account_invalid: RECEIVER_UNREGISTERED"),
        ("nofunds", "withdraw.balance_insufficient: INSUFFICIENT_FUNDS"),
        ("nomoney", "withdraw.balance_insufficient: INSUFFICIENT_FUNDS"),
        ("limit", "withdraw.limit_exceeded: TRANSACTION_LIMIT_EXCEEDED"),
        ("regulatory", "withdraw.user_restricted: REGULATORY_BLOCKED"),
        ("denied", "withdraw.platform_rejected: DENIED"),
    ],
)
async def test_a_payout_that_fails_says_why_and_frees_what_was_reserved(
    payer: Payer, receiver: str, reason: str
) -> None:
    await payer.configure(limits={"per_day": 1230})
    uid = await payer.user(receiver)
    assert (await payer.withdraw(uid))[0] == 200
    async with payer.working():
        await until(lambda: _is(payer, uid, "WITHDRAW_FAILED"))
    _, reply = await payer.read(uid)
    assert (reply["withdraw"]["reason"], reply["withdraw"]["withdraw_time"]) == (reason, ZERO)
    assert await payer.entries(uid) == ["reserve", "void"]
    assert (await payer.withdraw(uid, withdraw_id=f"again{uid}"))[0] == 200


async def test_an_unclaimed_payout_stays_in_progress_and_fails_once_it_is_returned(payer: Payer) -> None:
    uid = await payer.user("unregistered")
    await payer.withdraw(uid)
    async with payer.working():
        await until(lambda: payer.payouts_of(uid))
        assert await payer.status(uid) == "WITHDRAW_START"
        [payout_id] = await payer.payouts_of(uid)
        await payer.control("payout", payout_id=payout_id, status="RETURNED")
        await until(lambda: _is(payer, uid, "WITHDRAW_FAILED"))


async def test_a_payout_that_comes_back_later_stays_paid_and_is_entered(payer: Payer) -> None:
    uid = await payer.user()
    await payer.withdraw(uid)
    async with payer.working():
        await until(lambda: _is(payer, uid, "WITHDRAW_SUCCESS"))
        [payout_id] = await payer.payouts_of(uid)
        await payer.control("payout", payout_id=payout_id, status="REVERSED")
        for _ in range(2):
            await payer.read_back(uid)
        await until(lambda: _has_entries(payer, uid, ["reserve", "pay", "return"]))
    assert await payer.status(uid) == "WITHDRAW_SUCCESS"


async def test_a_payout_whose_return_no_webhook_has_reported_is_found_in_the_list_of_events(payer: Payer) -> None:
    uid = await payer.user()
    await payer.withdraw(uid)
    async with payer.working():
        await until(lambda: _is(payer, uid, "WITHDRAW_SUCCESS"))
    await work_off(payer.server.services)
    [payout_id] = await payer.payouts_of(uid)
    await payer.control("payout", payout_id=payout_id, status="REVERSED")
    async with payer.working():
        at = rfc3339(utc_now() + timedelta(minutes=5))
        assert (await ask(payer.server, "POST", "/dev/clock", json={"app": "default", "at": at}))[0] == 200
        await until(lambda: _has_entries(payer, uid, ["reserve", "pay", "return"]))
    found = await Operator(payer.server)("GET", "payments/mismatches?app=default&size=100")
    kinds = {mismatch["detail"] for mismatch in found.body["mismatches"] if mismatch["platform"] == "payouts"}
    assert "PAYMENT.PAYOUTS-ITEM.REVERSED" in kinds
    await payer.server.services.clock.move("default", offset_s=0)


async def _has_entries(payer: Payer, uid: str, kinds: list[str]) -> bool:
    return await payer.entries(uid) == kinds


async def test_the_same_id_and_body_return_the_same_withdrawal(payer: Payer) -> None:
    uid = await payer.user()
    replies = await asyncio.gather(*(payer.withdraw(uid) for _ in range(10)))
    assert {status for status, _ in replies} == {200}
    assert len({reply["withdraw"]["withdraw_id"] for _, reply in replies}) == 1
    assert await payer.entries(uid) == ["reserve"]
    status, reply = await payer.withdraw(uid, cash_num=12.31)
    assert (status, reply["error"]["error_type"]) == (409, "invalid_operation")
    other = await payer.user()
    status, reply = await payer.withdraw(other, withdraw_id=f"w{uid}")
    assert (status, reply["error"]["error_type"]) == (409, "invalid_operation")


async def test_concurrent_withdrawals_of_users_with_one_id_make_one(payer: Payer) -> None:
    users = [await payer.user() for _ in range(8)]
    shared = f"w{uuid4().hex}"
    replies = await asyncio.gather(*(payer.withdraw(uid, withdraw_id=shared) for uid in users))
    assert sorted(status for status, _ in replies) == [200] + [409] * 7


async def test_limits_hold_for_concurrent_withdrawals(payer_at_noon: Payer) -> None:
    payer = payer_at_noon
    await payer.configure(limits={"per_call": 1230, "per_day": 5000})
    uid = await payer.user()
    status, reply = await payer.withdraw(uid, cash_num=12.31)
    assert (status, reply["error"]["error_type"]) == (400, "withdraw.limit_exceeded")
    replies = await asyncio.gather(*(payer.withdraw(uid, withdraw_id=f"{n}{uid}") for n in range(8)))
    assert sorted(status for status, _ in replies) == [200] * 4 + [400] * 4
    refused = next(reply for status, reply in replies if status == 400)
    assert refused["error"]["message"] == (
        "withdraw.limit_exceeded: the user may withdraw 0.80 USD more on this day (UTC)"
    )


DAY_BEGINS_AND_ENDS = {
    "2027-01-28T12:00:00Z": ("2027-01-28T00:00:00Z", "2027-01-29T00:00:00Z"),
    "2027-01-29T12:00:00Z": ("2027-01-29T00:00:00Z", "2027-01-30T00:00:00Z"),
    "2027-01-30T12:00:00Z": ("2027-01-30T00:00:00Z", "2027-01-31T00:00:00Z"),
    "2027-01-31T12:00:00Z": ("2027-01-31T00:00:00Z", "2027-02-01T00:00:00Z"),
    "2027-02-28T12:00:00Z": ("2027-02-28T00:00:00Z", "2027-03-01T00:00:00Z"),
    "2027-03-14T07:00:00Z": ("2027-03-14T00:00:00Z", "2027-03-15T00:00:00Z"),
    "2027-03-28T01:00:00Z": ("2027-03-28T00:00:00Z", "2027-03-29T00:00:00Z"),
    "2027-03-31T12:00:00Z": ("2027-03-31T00:00:00Z", "2027-04-01T00:00:00Z"),
    "2027-10-31T01:00:00Z": ("2027-10-31T00:00:00Z", "2027-11-01T00:00:00Z"),
    "2027-11-07T06:00:00Z": ("2027-11-07T00:00:00Z", "2027-11-08T00:00:00Z"),
    "2027-12-31T23:59:59Z": ("2027-12-31T00:00:00Z", "2028-01-01T00:00:00Z"),
    "2028-01-01T00:00:00Z": ("2028-01-01T00:00:00Z", "2028-01-02T00:00:00Z"),
    "2028-02-29T12:00:00Z": ("2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z"),
}


async def test_the_limit_of_the_day_of_each_hard_instant_holds_until_midnight(
    payer: Payer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await payer.configure(limits={"per_day": 1230})

    async def withdraw(at: datetime) -> tuple[int, str]:
        """Withdraw the limit of a day while the clock of the app stands still, even just before midnight."""
        monkeypatch.setattr(payer.server.services.clock, "now", lambda _: at)
        status, reply = await payer.withdraw(uid, withdraw_id=uuid4().hex)
        return status, reply["error"]["error_type"] if status != 200 else ""

    for instant, (begins, ends) in walk(DAY_BEGINS_AND_ENDS):
        uid = await payer.user()
        assert await withdraw(from_rfc3339(begins)) == (200, "")
        assert await withdraw(instant) == (400, "withdraw.limit_exceeded")
        assert await withdraw(from_rfc3339(ends) - timedelta(microseconds=1)) == (400, "withdraw.limit_exceeded")
        assert await withdraw(from_rfc3339(ends)) == (200, "")
        uid = await payer.user()
        assert await withdraw(instant) == (200, "")
        assert await withdraw(from_rfc3339(ends) - timedelta(microseconds=1)) == (400, "withdraw.limit_exceeded")
        assert await withdraw(from_rfc3339(ends)) == (200, "")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"cash_num": 0}, "cash_num"),
        ({"cash_num": -1}, "cash_num"),
        ({"cash_num": 1.001}, "cash_num"),
        ({"cash_num": 0.001}, "cash_num"),
        ({"cash_num": 1e300}, "cash_num"),
        ({"cash_num": 2**64}, "cash_num"),
        ({"cash_num": 10**4200}, "cash_num"),
        ({"cash_num": "12"}, "cash_num"),
        ({"cash_num": True}, "cash_num"),
        ({"withdraw_id": ""}, "withdraw_id"),
        ({"withdraw_id": "a" * 65}, "withdraw_id"),
        ({"start_time": "yesterday"}, "start_time"),
        ({"timezone": "8"}, "timezone"),
        ({"desc": "a\0b"}, "U+0000"),
    ],
)
async def test_a_wrong_field_is_named(payer: Payer, change: dict[str, Any], field: str) -> None:
    uid = await payer.user()
    status, reply = await payer.withdraw(uid, **change)
    assert (status, reply["error"]["error_type"]) == (400, "invalid_parameter")
    assert field in reply["error"]["message"]
    assert await payer.entries(uid) == []


async def test_yen_have_no_decimals(payer: Payer) -> None:
    await payer.configure(currency="JPY")
    uid = await payer.user()
    status, reply = await payer.withdraw(uid, cash_num=12.5)
    assert (status, reply["error"]["error_type"]) == (400, "invalid_parameter")
    assert (await payer.withdraw(uid, cash_num=1200))[0] == 200
    async with payer.working():
        await until(lambda: _is(payer, uid, "WITHDRAW_SUCCESS"))


async def test_a_user_without_a_proven_address_cannot_be_paid(payer: Payer) -> None:
    uid = await payer.user(None)
    status, reply = await payer.withdraw(uid)
    assert (status, reply["error"]["error_type"]) == (400, "withdraw.account_invalid")


async def test_there_is_no_withdrawal_of_another_user(payer: Payer) -> None:
    uid, other = await payer.user(), await payer.user()
    assert (await payer.withdraw(uid))[0] == 200
    for any_id in (f"w{uid}", "nope", None):
        status, reply = await payer.read(other, any_id)
        assert (status, reply["error"]["error_type"]) == (404, "item_not_found")


async def test_a_user_is_not_deactivated_during_a_withdrawal_nor_paid_during_deactivation(payer: Payer) -> None:
    uid = await payer.user()
    await payer.withdraw(uid)
    headers = token(scope="account")
    status, reply = await ask(payer.server, "POST", f"/bp/server/user/{uid}/deactivate", headers=headers)
    assert (status, reply["error"]["message"]) == (400, "operation_not_allowed: a withdrawal is in progress")
    async with payer.working():
        await until(lambda: _is(payer, uid, "WITHDRAW_SUCCESS"))
    status, reply = await ask(payer.server, "POST", f"/bp/server/user/{uid}/deactivate", headers=headers)
    assert status == 200, reply
    status, reply = await payer.withdraw(uid, withdraw_id=f"later{uid}")
    assert (status, reply["error"]["error_type"]) == (400, "withdraw.user_restricted")
    assert (await payer.withdraw(uid))[1]["withdraw"]["status"] == "WITHDRAW_SUCCESS"


@pytest.mark.parametrize("fault", ["server_error", "refuse", "rate_limited", "unavailable", "unauthorized"])
async def test_a_fault_of_the_platform_keeps_the_withdrawal_in_progress_and_pays_once(
    payer: Payer, fault: str
) -> None:
    await payer.configure(secret=f"sandbox,fault={fault}")
    uid = await payer.user()
    await payer.withdraw(uid)
    async with payer.working():
        await until(lambda: _has_reason(payer, uid, "withdraw.platform_unavailable"))
        assert await payer.status(uid) == "WITHDRAW_START"
        await payer.configure()
        await until(lambda: _is(payer, uid, "WITHDRAW_SUCCESS"))
    _, reply = await payer.read(uid)
    assert reply["withdraw"]["reason"] == ""
    assert await payer.entries(uid) == ["reserve", "pay"]


async def _has_reason(payer: Payer, uid: str, reason: str) -> bool:
    _, reply = await payer.read(uid)
    return bool(reply["withdraw"]["reason"] == reason)


async def test_a_payout_whose_answer_was_lost_is_not_made_again(payer: Payer) -> None:
    uid = await payer.user()
    await payer.withdraw(uid)
    async with payer.working():
        await until(lambda: _is(payer, uid, "WITHDRAW_SUCCESS"))
        [first] = await payer.payouts_of(uid)
        async with payer.server.services.database.transaction() as conn:
            # As if the process had died between the call and the commit.
            await conn.execute("alter table withdrawal_entries disable trigger user")
            await conn.execute("delete from withdrawal_entries where uid = $1 and kind = 'pay'", uid)
            await conn.execute("alter table withdrawal_entries enable trigger user")
            await conn.execute(
                "update withdrawals set status = 'START', payout_id = '', paid_at = null, check_at = now()"
                " where uid = $1",
                uid,
            )
        await until(lambda: _is(payer, uid, "WITHDRAW_SUCCESS"))
    assert await payer.payouts_of(uid) == [first]


async def test_a_missing_config_is_named(payer: Payer) -> None:
    key = ConfigKey("default", "payouts", "Default")
    await payer.server.services.configs.delete(key, author="test", origin=COMMAND)
    uid = await payer.user()
    status, reply = await payer.withdraw(uid)
    assert (status, reply["error"]["error_type"]) == (422, "config_invalid")


async def test_a_webhook_settles_a_withdrawal(payer: Payer) -> None:
    await payer.configure(webhook_id="WH1")
    url = f"{payer.server.url}/bp/webhook/payouts/default/Default"
    await payer.control("webhook", id="WH1", url=url)
    uid = await payer.user("slow")
    await payer.withdraw(uid)
    async with payer.working():
        await until(lambda: payer.payouts_of(uid))
        [payout_id] = await payer.payouts_of(uid)
        await payer.control("payout", payout_id=payout_id, status="SUCCESS")
        await until(lambda: _has_entries(payer, uid, ["reserve", "pay"]))


async def test_a_forged_webhook_is_refused(payer: Payer) -> None:
    await payer.configure(webhook_id="WH1")
    path = "/bp/webhook/payouts/default/Default"
    event = {"id": "WH-1", "event_type": "PAYMENT.PAYOUTS-ITEM.SUCCEEDED", "resource": {}}
    status, reply = await ask(payer.server, "POST", path, json=event)
    assert (status, reply["error"]["error_type"]) == (400, "invalid_parameter")
