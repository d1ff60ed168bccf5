"""An operator settles a mismatch with a reason, and it does not need attention any more."""

import asyncio
from typing import Any

import pytest

from tests.app.operator_calls import OPERATORS, call
from tests.running.servers import Server

PATH = "/admin/api/payments/mismatches"
ADD = """
insert into payment_mismatches (app_id, platform, kind, subject, detail, found_at)
values ('default', 'walletpay', $1, 's', '', now()) returning mismatch_id
"""


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def add(server: Server, kind: str) -> int:
    async with server.services.database.connection() as conn:
        mismatch_id: int = await conn.fetchval(ADD, kind)
        return mismatch_id


async def listed(server: Server, query: str) -> list[Any]:
    status, answer = await call(server, "GET", f"{PATH}{query}")
    assert status == 200, answer
    rows: list[Any] = answer["mismatches"]
    return rows


async def test_two_operators_settle_a_mismatch_once(server: Server) -> None:
    mismatch_id = await add(server, "refund_failed")
    _, editor = await call(server, "POST", OPERATORS, {"name": "ada", "role": "editor"})
    path = f"{PATH}/{mismatch_id}/resolve"
    status, answer = await call(server, "POST", path, reason="")
    assert (status, answer["error"]["message"]) == (400, "invalid_parameter: X-Parley-Reason is required")
    answers = await asyncio.gather(
        *(call(server, "POST", path, token=editor["token"], reason=f"Refunded by hand {n}") for n in range(3))
    )
    assert [status for status, _ in answers] == [200] * 3
    [row] = await listed(server, "")
    assert all(answer == row for _, answer in answers)
    assert (row["resolved"], row["resolved_by"]) == (True, "ada")
    assert row["resolution"].startswith("Refunded by hand")
    _, audit = await call(server, "GET", "/admin/api/audit?kind=mismatch")
    [entry] = audit["changes"]
    assert (entry["action"], entry["app"], entry["name"], entry["reason"]) == (
        "mismatch.resolve",
        "default",
        str(mismatch_id),
        row["resolution"],
    )


async def test_what_needs_nobody_counts_as_resolved(server: Server) -> None:
    kinds = ("missed_event", "missed_entry", "refund_failed", "amount_differs")
    ids = {kind: await add(server, kind) for kind in kinds}
    await call(server, "POST", f"{PATH}/{ids['amount_differs']}/resolve", reason="Granted by hand")
    assert [row["kind"] for row in await listed(server, "?resolved=false")] == ["refund_failed"]
    assert {row["kind"] for row in await listed(server, "?resolved=true")} == {*kinds} - {"refund_failed"}
    assert await listed(server, "?resolved=true&kind=refund_failed") == []


async def test_an_unknown_mismatch_is_not_found(server: Server) -> None:
    for mismatch_id in ("0", "x", "9" * 30):
        status, answer = await call(server, "POST", f"{PATH}/{mismatch_id}/resolve", reason="None")
        assert (status, answer["error"]["error_type"]) == (404, "item_not_found"), mismatch_id
    assert (await call(server, "GET", f"{PATH}?resolved=maybe"))[0] == 400
