"""Operators list what users have paid, what does not agree with platforms, and check the ledger."""

from typing import Any
from uuid import uuid4

from tests.app.operator_calls import call
from tests.running.servers import Server


async def read(server: Server, path: str) -> Any:
    status, answer = await call(server, "GET", path)
    assert status == 200, answer
    return answer


async def execute(server: Server, statement: str, *values: Any) -> None:
    async with server.services.database.connection() as conn:
        await conn.execute(statement, *values)


async def test_subscriptions_of_both_platforms_are_one_list_in_pages(shared_server: Server) -> None:
    uid, _ = await shared_server.login()
    ids = sorted(uuid4().hex for _ in range(4))
    for row_id in ids[:2]:
        await execute(
            shared_server,
            "insert into wallet_subscriptions (row_id, app_id, uid, config, bp_product_id, product, plan_id,"
            " country, return_url, cancel_url, status, created_at)"
            " values ($1, 'default', $2, 'c', 'pro', '{}', 'p', 'US', '', '', 'ACTIVE', now())",
            row_id, uid,
        )  # fmt: skip
    for row_id in ids[2:]:
        await execute(
            shared_server,
            "insert into card_subscriptions (row_id, app_id, uid, config, product_id, product, price_id, status,"
            " created_at, checked_at) values ($1, 'default', $2, 'c', 'pro', '{}', 'p', 'active', now(), now())",
            row_id, uid,
        )  # fmt: skip
    path = "/admin/api/payments/subscriptions?app=default"
    first = await read(shared_server, f"{path}&size=3")
    assert [row["row_id"] for row in first["orders"]] == ids[:0:-1]
    last = await read(shared_server, f"{path}&size=3&before={first['next']}")
    assert ([row["row_id"] for row in last["orders"]], "next" in last) == (ids[:1], False)
    assert [row["row_id"] for row in (await read(shared_server, f"{path}&sort=created"))["orders"]] == ids
    assert [row["row_id"] for row in (await read(shared_server, f"{path}&platform=cardpay"))["orders"]] == ids[
        :1:-1
    ]
    assert len((await read(shared_server, f"{path}&status=Active&size=100"))["orders"]) == 4
    assert (await read(shared_server, f"{path}&status=canceled"))["orders"] == []


async def test_mismatches_are_listed_by_kind(shared_server: Server) -> None:
    for kind in ("amount_differs", "missed_event"):
        await execute(
            shared_server,
            "insert into payment_mismatches (app_id, platform, kind, subject, detail, found_at)"
            " values ('default', 'cardpay', $1, 's', '', now())",
            kind,
        )
    found = await read(shared_server, "/admin/api/payments/mismatches?kind=missed_event")
    assert {row["kind"] for row in found["mismatches"]} == {"missed_event"}
    status, _ = await call(shared_server, "GET", "/admin/api/payments/mismatches?kind=nope")
    assert status == 400


async def test_the_check_of_the_ledger_names_what_differs(shared_server: Server) -> None:
    assert await read(shared_server, "/admin/api/ledger/check") == {"complete": True, "differences": []}
    uid, _ = await shared_server.login()
    await execute(
        shared_server,
        "insert into assets (app_id, uid, name, subscription, type, quantity, total_quantity, platform, product_id,"
        " bp_product_id, receipt_id, origin, is_trial, renews)"
        " values ('default', $1, 'coins', '', 'consumable', 5, 0, '', '', '', '', '', false, false)",
        uid,
    )
    found = await read(shared_server, "/admin/api/ledger/check")
    assert found["differences"] == [
        {"app": "default", "user_id": uid, "subject": "coins", "problem": "has no entry"}
    ]
