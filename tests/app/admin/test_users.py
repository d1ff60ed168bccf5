"""Operators find users by what support knows of them, read their history, and change accounts with a reason."""

from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from storage.operators.audit import COMMAND
from tests.app.callers import work_off
from tests.app.operator_calls import OPERATORS, call
from tests.running.servers import Server

USERS = "/admin/api/users"


@pytest.fixture
async def server(shared_server: Server) -> Server:
    product = {"type": "consumable", "asset": "coins", "quantity": 100}
    await shared_server.services.configs.put("default", "products", "coins", product, author="test", origin=COMMAND)
    return shared_server


async def read(server: Server, path: str, **options: Any) -> Any:
    status, answer = await call(server, "GET", path, **options)
    assert status == 200, answer
    return answer


async def execute(server: Server, statement: str, *values: Any) -> None:
    async with server.services.database.connection() as conn:
        await conn.execute(statement, *values)


async def give_address(server: Server, uid: str, address: str) -> None:
    await execute(
        server,
        "insert into identities (app_id, platform, social_id, uid, create_time) values ($1, $2, $3, $4, now())",
        "default", "email", address, uid,
    )  # fmt: skip


async def found(server: Server, text: str, **query: str) -> list[tuple[str, str]]:
    fields = "&".join(f"{name}={value}" for name, value in query.items())
    answer = await read(server, f"{USERS}?text={text}&{fields}")
    return [(row["user_id"], row["found_by"]) for row in answer["users"]]


async def test_users_are_listed_in_both_orders_in_pages_and_by_status(server: Server) -> None:
    made = [(await server.login())[0] for _ in range(5)]
    newest = await read(server, f"{USERS}?size=2")
    assert [row["user_id"] for row in newest["users"]] == made[:-3:-1]
    further = await read(server, f"{USERS}?size=100&before={newest['next']}")
    assert [row["user_id"] for row in further["users"]][:3] == made[2::-1]
    oldest = await read(server, f"{USERS}?sort=created&size=100")
    assert [row["user_id"] for row in oldest["users"]][-5:] == made
    assert (await read(server, f"{USERS}?status=frozen&size=100"))["users"] == []
    assert (await call(server, "GET", f"{USERS}?app=nope"))[0] == 404


async def test_a_user_is_found_by_what_support_knows(server: Server) -> None:
    uid, device = (await server.login(device_id := uuid4().hex))[0], device_id
    address = f"ada-{uid}@example.com"
    await give_address(server, uid, address)
    await execute(
        server,
        "insert into card_payments (payment_id, app_id, uid, config, amount, currency, intent_id, status,"
        " created_at, checked_at) values ($1, 'default', $2, 'c', 100, 'usd', $3, 'succeeded', now(), now())",
        f"p{uid}", uid, f"pi_{uid}",
    )  # fmt: skip
    await execute(
        server,
        "insert into attempts (app_id, stream_id, number, uid, stage, strategy, vendor, outcome, elapsed_ms,"
        " input_unit, output_unit, price, usage_source)"
        " values ('default', $1, 0, $2, 'llm', 's', 'v', 'won', 5, 1, 1, 0.5, 'vendor')",
        f"s{uid}", uid,
    )  # fmt: skip
    for text, by in [
        (uid, "user_id"),
        (address, "identity"),
        (address.upper(), "identity"),
        (address[:20], "identity"),
        (f"pi_{uid}", "payment"),
        (f"s{uid}", "stream"),
    ]:
        assert await found(server, text) == [(uid, by)], text
    assert await found(server, uid, app="default") == [(uid, "user_id")]
    assert await found(server, device) == [], "the id of a device is a secret"
    assert await found(server, "%25") == []
    attempts = await read(server, f"/admin/api/streams/default/s{uid}/attempts")
    assert (attempts["user_id"], attempts["attempts"][0]["price"]) == (uid, "0.5")


async def test_a_user_is_found_by_a_phone_number_as_people_write_it(server: Server) -> None:
    uid, _ = await server.login()
    digits = f"49151{int(uid[-8:], 16):010d}"
    await execute(
        server,
        "insert into identities (app_id, platform, social_id, uid, create_time)"
        " values ('default', 'phone', $1, $2, now())",
        f"+{digits}", uid,
    )  # fmt: skip
    land, network, rest = digits[:2], digits[2:5], digits[5:]
    for text in (f"+{digits}", f"+{land} {network} {rest}", f"+{land} (0){network}/{rest[:4]}-{rest[4:]}"):
        assert await found(server, quote(text)) == [(uid, "identity")], text


async def test_the_history_of_a_user_has_pages_without_gaps_and_no_secret(server: Server) -> None:
    device = uuid4().hex
    uid, _ = await server.login(device)
    await server.login(device)
    await give_address(server, uid, f"{uid}@example.com")
    path = f"{USERS}/default/{uid}"
    await call(server, "POST", f"{path}/assets", {"product": "coins"}, reason="a gift", key=uid)
    whole = await read(server, f"{path}/history?size=100")
    kinds = [row["kind"] for row in whole["history"]]
    assert sorted(kinds) == ["account", "asset", "identity", "identity", "operator", "session", "session"]
    assert device not in str(whole)
    assert (await read(server, path))["identities"] == [f"email: {uid}@example.com"], "that of the device is secret"
    paged, before = [], ""
    while True:
        page = await read(server, f"{path}/history?size=2{before}")
        paged += page["history"]
        if "next" not in page:
            break
        before = f"&before={page['next']}"
    assert paged == whole["history"]
    only = await read(server, f"{path}/history?kinds=asset,operator")
    assert {row["kind"] for row in only["history"]} == {"asset", "operator"}
    [entry] = [row for row in only["history"] if row["kind"] == "asset"]
    assert (entry["facts"]["name"], entry["facts"]["quantity"], entry["facts"]["entry"]) == ("coins", 100, "grant")
    status, answer = await call(server, "GET", f"{path}/history?kinds=nope")
    assert (status, answer["error"]["message"].startswith("invalid_parameter: kinds must be some of")) == (
        400,
        True,
    )
    assert (await call(server, "GET", f"{path}/history?before=nope"))[0] == 400


async def test_each_part_of_the_history_can_be_read_alone(server: Server) -> None:
    from storage.accounts.user_history import KINDS  # noqa: PLC0415

    uid, _ = await server.login()
    for kind in KINDS:
        rows = (await read(server, f"{USERS}/default/{uid}/history?kinds={kind}"))["history"]
        assert {row["kind"] for row in rows} <= {kind}


async def test_changes_of_an_account_need_a_reason_and_are_audited(server: Server) -> None:
    uid, session = await server.login()
    path = f"{USERS}/default/{uid}"
    for action in ("end_sessions", "freeze", "recover", "erase", "export"):
        status, answer = await call(server, "POST", f"{path}/{action}", reason="")
        assert (status, answer["error"]["message"]) == (400, "invalid_parameter: X-Parley-Reason is required")
    assert (await read(server, path))["sessions"] == 1
    assert (await call(server, "POST", f"{path}/recover", reason="x"))[0] == 409
    _, ended = await call(server, "POST", f"{path}/end_sessions", reason="lost\u00a0phone")
    assert ended == {"status": "active", "ended_sessions": 1}
    async with server.http.get(f"{server.url}/bp/asset", headers={"X-Service-Session-Token": session}) as response:
        assert "invalid_session" in await response.text()
    assert (await call(server, "POST", f"{path}/freeze", reason="fraud"))[1]["status"] == "frozen"
    frozen = await read(server, path)
    assert (frozen["status"], "closes_at" in frozen) == ("frozen", True)
    assert (await call(server, "POST", f"{path}/freeze", reason="again"))[1]["status"] == "frozen"
    assert (await call(server, "POST", f"{path}/recover", reason="cleared"))[1]["status"] == "active"
    audit = await read(server, f"/admin/api/audit?kind=user&name={uid}")
    assert [(row["action"], row["reason"]) for row in audit["changes"]] == [
        ("user.recover", "cleared"), ("user.freeze", "fraud"), ("user.end_sessions", "lost\u00a0phone"),
    ]  # fmt: skip


async def test_an_erased_user_has_a_receipt_and_cannot_be_changed(server: Server) -> None:
    uid, _ = await server.login()
    path = f"{USERS}/default/{uid}"
    assert (await call(server, "POST", f"{path}/erase", reason="asked by letter"))[1]["status"] == "deactivated"
    await work_off(server.services)
    receipt = await read(server, f"{path}/erasure_receipt")
    assert (receipt["receipt"]["user_id"], receipt["receipt"]["cause"]) == (uid, "operator")
    assert (await read(server, path))["status"] == "deactivated"
    assert (await call(server, "POST", f"{path}/freeze", reason="x"))[0] == 404
    rows = (await read(server, f"{path}/history"))["history"]
    assert {(row["kind"], row["id"]) for row in rows if row["kind"] == "account"} == {
        ("account", "created"), ("account", "deactivated"),
    }  # fmt: skip


async def test_a_withdrawal_in_progress_keeps_an_account_from_being_frozen_or_erased(server: Server) -> None:
    uid, _ = await server.login()
    await execute(
        server,
        "insert into withdrawals (withdrawal_id, app_id, uid, app_withdraw_id, request, config, platform,"
        " merchant_id, amount, currency, status, reason, payout_id, created_at, updated_at)"
        " values ($1, 'default', $2, $1, '{}', 'c', 'p', 'm', 1, 'usd', 'START', '', '', now(), now())",
        f"w{uid}", uid,
    )  # fmt: skip
    path = f"{USERS}/default/{uid}"
    assert (await read(server, path))["restriction"] == "a withdrawal is in progress"
    for action in ("freeze", "erase"):
        status, answer = await call(server, "POST", f"{path}/{action}", reason="x")
        assert (status, answer["error"]["message"]) == (409, "invalid_operation: a withdrawal is in progress")
    assert await found(server, f"w{uid}") == [(uid, "withdrawal")]


async def test_only_an_admin_reads_what_was_said(server: Server) -> None:
    uid, _ = await server.login()
    conversation = f"c{uid}"
    await execute(
        server,
        "insert into conversations (app_id, conversation_id, uid) values ('default', $1, $2)", conversation, uid,
    )  # fmt: skip
    await execute(
        server,
        "insert into conversation_records (app_id, conversation_id, record_id, status, content, stream_id)"
        " values ('default', $1, 1, 'complete', $2, 's')",
        conversation, [{"role": "user", "content": [{"text": "<b>hello</b>"}]}],
    )  # fmt: skip
    _, added = await call(server, "POST", OPERATORS, {"name": f"e-{uid[:20]}", "role": "editor"})
    path = f"/admin/api/conversations/default/{conversation}"
    assert (await call(server, "GET", path, token=added["token"]))[0] == 403
    texts = await read(server, path)
    assert texts["records"][0]["messages"][0]["content"][0]["text"] == "<b>hello</b>"
    assert (await call(server, "GET", "/admin/api/conversations/default/nope"))[0] == 404
    assert await found(server, conversation) == [(uid, "conversation")]


async def test_a_ban_is_shown_listed_and_exported_and_a_repeat_changes_nothing(server: Server) -> None:
    (uid, _), (other, _) = await server.login(), await server.login()
    path, until = f"{USERS}/default/{uid}", "2090-01-01T02:00:00+02:00"
    shown = {"until": "2090-01-01T00:00:00Z", "reason": "Spam, スパム"}
    for body in ({"until": until, "reason": "Spam, スパム"}, {"until": shown["until"], "reason": " Spam, スパム "}):
        status, banned = await call(server, "POST", f"{path}/ban", body, reason="")
        assert (status, banned["status"]) == (200, "active")
        assert banned["ban"] == {**shown, "since": banned["ban"]["since"]}
    account = await read(server, path)
    assert (account["ban"], account["sessions"]) == (banned["ban"], 0)
    [row] = (await read(server, f"{USERS}?status=banned"))["users"]
    assert (row["user_id"], row["ban"]) == (uid, banned["ban"])
    assert "ban" not in (await read(server, f"{USERS}?text={other}"))["users"][0]
    audit = await read(server, f"/admin/api/audit?kind=user&name={uid}")
    assert [(row["action"], row["reason"]) for row in audit["changes"]] == [("user.ban", "Spam, スパム")]
    assert (await call(server, "POST", f"{path}/export", reason="asked"))[0] == 200
    await work_off(server.services)
    assert (await read(server, path))["export"]["status"] == "finished"
    _, link = await call(server, "POST", f"{path}/export/link", reason="asked")
    async with server.http.get(link["url"]) as response:
        assert (await response.json())["account"]["ban_reason"] == "Spam, スパム"
    status, lifted = await call(server, "POST", f"{path}/unban", reason="appeal")
    assert (status, lifted) == (200, {"status": "active", "ended_sessions": 0})
    assert (await read(server, f"{USERS}?status=banned"))["users"] == []


async def test_a_ban_needs_an_editor_a_reason_and_a_time_in_the_future(server: Server) -> None:
    uid, _ = await server.login()
    path = f"{USERS}/default/{uid}"
    for body, fault in [
        ({}, "reason is required"),
        ({"reason": " "}, "reason is required"),
        ({"reason": "\u200b\u3164"}, "reason is required"),
        ({"reason": "x" * 501}, "reason must be at most 500 characters"),
        ({"reason": "a\nb"}, "reason must not contain control characters or line breaks"),
        ({"reason": 7}, "reason must be"),
        ({"reason": "x", "until": "2020-01-01T00:00:00Z"}, "until must be in the future"),
        ({"reason": "x", "until": "tomorrow"}, "until must be"),
        ({"reason": "x", "until": 4_000_000_000}, "until must be"),
    ]:
        status, answer = await call(server, "POST", f"{path}/ban", body)
        assert (status, answer["error"]["error_type"]) == (400, "invalid_parameter"), body
        assert answer["error"]["message"].startswith(f"invalid_parameter: {fault}"), answer
    assert (await call(server, "POST", f"{path}/unban", reason=""))[0] == 400
    _, viewer = await call(server, "POST", OPERATORS, {"name": f"v-{uid[:20]}", "role": "viewer"})
    for action in ("ban", "unban"):
        assert (await call(server, "POST", f"{path}/{action}", {"reason": "x"}, token=viewer["token"]))[0] == 403
        assert (await call(server, "POST", f"{USERS}/default/nobody/{action}", {"reason": "x"}))[0] == 404
    assert "ban" not in await read(server, path)
