"""Operators settle withdrawals whose result the platform does not know any more."""

import asyncio

import pytest

from tests.app.callers import ask, token, work_off
from tests.app.operators import Operator
from tests.app.withdrawals.payer import Payer
from tests.app.withdrawals.unknown_payouts import payout_of, reported, settle, unknown
from tests.waiting import until

UNKNOWN = ("payout_unknown", "12.30 USD")


async def listed(payer: Payer, query: str) -> list[str]:
    """The ids of all listed withdrawals, read in pages of two."""
    ids: list[str] = []
    before = ""
    while True:
        found = await Operator(payer.server)("GET", f"withdrawals?app=default&size=2&{query}{before}")
        assert found.status == 200, found.body
        assert len(found.body["withdrawals"]) <= 2
        ids += [withdrawal["withdrawal_id"] for withdrawal in found.body["withdrawals"]]
        if "next" not in found.body:
            return ids
        before = f"&before={found.body['next']}"


async def receive_events(payer: Payer) -> None:
    url = f"{payer.server.url}/bp/webhook/payouts/default/Default"
    await payer.control("webhook", id="WH1", url=url)


async def turn(payer: Payer, withdrawal_id: str, status: str) -> None:
    """Let PayPal report a result of a payout late, by a webhook."""
    known = await worked_on(payer)
    await payer.control("payout", payout_id=await payout_of(payer, withdrawal_id), status=status)
    async with payer.working():
        await until(lambda: _is_more(payer, known))


async def worked_on(payer: Payer) -> int:
    """How many webhooks were received and worked on."""
    async with payer.server.services.database.connection() as conn:
        count: int = await conn.fetchval("select count(*) from webhooks where status = 'done'")
    return count


async def _is_more(payer: Payer, known: int) -> bool:
    return await worked_on(payer) > known


async def test_an_unknown_withdrawal_is_settled_as_paid(payer: Payer) -> None:
    uid, withdrawal_id = await unknown(payer)
    found = await Operator(payer.server)("GET", "withdrawals?state=unknown&size=1")
    [row] = found.body["withdrawals"]
    assert (row["withdrawal_id"], row["user_id"], row["withdraw_id"]) == (withdrawal_id, uid, f"w{uid}")
    assert (row["amount"], row["currency"], row["state"]) == (1230, "USD", "unknown")
    assert "settled_at" not in row

    first = await settle(payer, withdrawal_id, "paid")
    assert first.status == 200, first.body
    assert (first.body["state"], first.body["reason"]) == ("paid", "")
    assert first.body["settled_at"] == first.body["paid_at"]
    assert "unknown_at" not in first.body
    assert (await settle(payer, withdrawal_id, "paid")).body == first.body
    assert (await settle(payer, withdrawal_id, "failed")).status == 409
    assert await payer.entries(uid) == ["reserve", "pay"]
    _, reply = await payer.read(uid)
    withdraw = reply["withdraw"]
    assert (withdraw["status"], withdraw["withdraw_time"]) == ("WITHDRAW_SUCCESS", first.body["paid_at"])
    assert withdrawal_id not in await listed(payer, "state=unknown")
    assert withdrawal_id in await listed(payer, "state=paid")


async def test_a_settlement_is_recorded_once_with_its_reason(payer: Payer) -> None:
    uid, withdrawal_id = await unknown(payer)
    for _ in range(2):
        assert (await settle(payer, withdrawal_id, "failed", X_Parley_Reason="not in the activity")).status == 200
    found = await Operator(payer.server)("GET", f"audit?kind=withdrawal&name={withdrawal_id}")
    [row] = found.body["changes"]
    assert (row["action"], row["app"], row["reason"]) == ("withdrawal.settle", "default", "not in the activity")
    same = {"user_id": uid, "amount": "12.30 USD"}
    assert row["before"] == {**same, "state": "unknown", "reason": "withdraw.platform_unavailable"}
    assert row["after"] == {**same, "state": "failed", "reason": "withdraw.not_paid"}


async def test_a_settlement_as_failed_frees_the_limit(payer_at_noon: Payer) -> None:
    payer = payer_at_noon
    uid, withdrawal_id = await unknown(payer, limits={"per_day": 1230})
    # The clock is back at noon, so the withdrawal is one of this day.
    status, reply = await payer.withdraw(uid, withdraw_id=f"again{uid}")
    assert (status, reply["error"]["error_type"]) == (400, "withdraw.limit_exceeded")
    assert (await settle(payer, withdrawal_id, "failed")).status == 200
    _, reply = await payer.read(uid)
    assert (reply["withdraw"]["status"], reply["withdraw"]["reason"]) == ("WITHDRAW_FAILED", "withdraw.not_paid")
    assert await payer.entries(uid) == ["reserve", "void"]
    assert (await payer.withdraw(uid, withdraw_id=f"again{uid}"))[0] == 200


async def test_an_account_can_be_deactivated_once_its_withdrawal_is_settled(payer: Payer) -> None:
    uid, withdrawal_id = await unknown(payer)
    path, headers = f"/bp/server/user/{uid}/deactivate", token(scope="account")
    status, reply = await ask(payer.server, "POST", path, headers=headers)
    assert reply["error"]["error_type"] == "operation_not_allowed", reply
    assert (await settle(payer, withdrawal_id, "paid")).status == 200
    status, reply = await ask(payer.server, "POST", path, headers=headers)
    assert status == 200, reply


async def test_only_an_unknown_withdrawal_is_settled_and_only_with_a_reason(payer: Payer) -> None:
    uid = await payer.user("slow")
    _, reply = await payer.withdraw(uid)
    withdrawal_id = reply["withdraw"]["withdraw_id"]
    refused = await settle(payer, withdrawal_id, "paid")
    assert refused.error == (
        409,
        f"invalid_operation: withdrawal {withdrawal_id} is in progress, so its result is not unknown",
    )
    await work_off(payer.server.services)
    await payer.control("payout", payout_id=await payout_of(payer, withdrawal_id), status="SUCCESS")
    await payer.check()
    await work_off(payer.server.services)
    assert await payer.status(uid) == "WITHDRAW_SUCCESS"
    assert (await settle(payer, withdrawal_id, "paid")).status == 409

    uid, withdrawal_id = await unknown(payer)
    assert (await settle(payer, withdrawal_id, "paid", X_Parley_Reason="")).error == (
        400,
        "invalid_parameter: X-Parley-Reason is required",
    )
    assert (await settle(payer, withdrawal_id, "unknown")).status == 400
    operator = Operator(payer.server)
    for path in ("default/none", f"other/{withdrawal_id}", f"default/w{uid}"):
        answer = await operator("POST", f"withdrawals/{path}/settle", {"outcome": "paid"}, X_Parley_Reason="why")
        assert answer.status == 404, path
    assert await payer.entries(uid) == ["reserve"]


async def test_of_concurrent_settlements_one_outcome_wins(payer: Payer) -> None:
    uid, withdrawal_id = await unknown(payer)
    outcomes = ["paid", "failed"] * 4
    answers = await asyncio.gather(*(settle(payer, withdrawal_id, outcome) for outcome in outcomes))
    assert sorted(answer.status for answer in answers) == [200] * 4 + [409] * 4
    assert len({answer.body["state"] for answer in answers if answer.status == 200}) == 1
    assert len(await payer.entries(uid)) == 2


@pytest.mark.parametrize(
    ("outcome", "late", "problem"),
    [("paid", "RETURNED", "withdraw.platform_rejected: RETURNED"), ("failed", "SUCCESS", "paid")],
)
async def test_a_late_result_that_differs_is_reported_and_changes_nothing(
    payer: Payer, outcome: str, late: str, problem: str
) -> None:
    uid, withdrawal_id = await unknown(payer, webhook_id="WH1")
    settled = await settle(payer, withdrawal_id, outcome)
    entries = await payer.entries(uid)
    await receive_events(payer)
    for _ in range(2):
        await turn(payer, withdrawal_id, late)
    detail = f"12.30 USD, {await payout_of(payer, withdrawal_id)}: {problem}"
    assert await reported(payer, withdrawal_id) == [UNKNOWN, ("payout_settled_otherwise", detail)]
    assert await payer.entries(uid) == entries
    assert (await settle(payer, withdrawal_id, outcome)).body == settled.body


async def test_a_late_result_that_agrees_is_not_reported(payer: Payer) -> None:
    uid, withdrawal_id = await unknown(payer, webhook_id="WH1")
    settled = await settle(payer, withdrawal_id, "paid")
    await receive_events(payer)
    await turn(payer, withdrawal_id, "SUCCESS")
    assert await reported(payer, withdrawal_id) == [UNKNOWN]
    assert await payer.entries(uid) == ["reserve", "pay"]
    assert (await settle(payer, withdrawal_id, "paid")).body == settled.body


async def test_a_late_webhook_ends_a_withdrawal_that_is_still_unknown(payer: Payer) -> None:
    uid, withdrawal_id = await unknown(payer, webhook_id="WH1")
    await receive_events(payer)
    await turn(payer, withdrawal_id, "SUCCESS")
    assert await payer.entries(uid) == ["reserve", "pay"]
    assert await payer.payouts_of(uid) == [await payout_of(payer, withdrawal_id)]
    assert withdrawal_id not in await listed(payer, "state=unknown")
    assert (await settle(payer, withdrawal_id, "paid")).status == 409


async def test_a_withdrawal_of_which_a_webhook_reports_progress_is_read_back_again(payer: Payer) -> None:
    uid, withdrawal_id = await unknown(payer, webhook_id="WH1")
    await receive_events(payer)
    await turn(payer, withdrawal_id, "ONHOLD")
    assert withdrawal_id in await listed(payer, "state=in_progress")
    assert (await settle(payer, withdrawal_id, "paid")).status == 409
    await payer.control("payout", payout_id=await payout_of(payer, withdrawal_id), status="SUCCESS")
    await payer.check()
    await work_off(payer.server.services)
    assert await payer.status(uid) == "WITHDRAW_SUCCESS"


async def test_withdrawals_are_listed_in_pages_the_newest_first(payer: Payer) -> None:
    made = [(await unknown(payer))[1] for _ in range(3)]
    found = await listed(payer, "state=unknown")
    assert [id_ for id_ in found if id_ in made] == made[::-1]
    assert found == sorted(found, reverse=True)
    assert set(made) <= set(await listed(payer, ""))
    assert await Operator(payer.server)("GET", "withdrawals?app=other") == await Operator(payer.server)(
        "GET", "withdrawals?app=other&state=failed"
    )
