"""Each change through the admin API or a command leaves one row in the audit log."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from app.commands.config_files import import_folder
from storage.jobs import inbox
from storage.jobs.inbox import NewWebhook
from storage.jobs.jobs import Job, enqueue
from storage.mail.recipients import recipient_of
from storage.operators.audit import COMMAND
from streams.wire.errors import ServiceError
from tests.app.admin.changing_rows import CHANGING, ELSEWHERE, matches
from tests.app.unknown_withdrawals import unknown_withdrawal
from tests.running.servers import ADMIN_TOKEN, Databases, Server, new_server

ACCOUNT = "/admin/api/configs/default/vendor_accounts/main"
VOICE = "/admin/api/configs/default/speech/voice"
SUPPRESSION = "/admin/api/suppressions/default/ada@example.com"
NEWS = {"strategy": "news"}
REMOVED = {"strategy": "news", "reason": "operator"}
OPERATORS = "/admin/api/operators"
SECRETS = ("sk-very-secret-1", "sk-very-secret-2")
MARK = {"secret": True}
WITHOUT_HEADER = {"config.put", "config.rollback", "user.ban", "user.unban"}
"""Changes whose reason is in the body: the comment of a revision, which may be empty, and the reason of a ban."""
INVISIBLE = "\u200b\u3164\u2060"
"""Characters that nobody sees: a space without a width, a filler of Hangul, and a joiner of words."""


class Note(Job):
    task: ClassVar[str] = "note"
    text: str


@pytest.fixture(scope="module")
async def module_server(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """The tests act as proxies, so that the address of a client is not that of its socket."""
    more = {"trusted_proxies": ("127.0.0.0/8",), "audit_days": 40}
    async with new_server(databases, tmp_path_factory.mktemp("data"), **more) as running:
        yield running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def call(
    server: Server, method: str, path: str, body: Any = None, *, token: str = ADMIN_TOKEN, **headers: str
) -> tuple[int, Any]:
    headers = {name.replace("_", "-"): text for name, text in headers.items()}
    headers = {"X-Parley-Reason": "a test"} | headers
    headers |= {"Authorization": f"Bearer {token}", "X-Forwarded-For": "192.0.2.1"}
    async with server.http.request(method, server.url + path, json=body, headers=headers) as response:
        return response.status, await response.json() if await response.read() else None


async def audit(server: Server, **query: Any) -> list[Any]:
    path = "/admin/api/audit?" + "&".join(f"{name.rstrip('_')}={value}" for name, value in query.items())
    status, answer = await call(server, "GET", path)
    assert status == 200, answer
    rows: list[Any] = answer["changes"]
    return rows


async def sql(server: Server, statement: str, *arguments: Any) -> Any:
    async with server.services.database.connection() as conn:
        return await conn.fetchval(statement, *arguments)


async def last_id(server: Server) -> int:
    return int(await sql(server, "select coalesce(max(audit_id), 0) from audit"))


async def held_job(server: Server) -> str:
    async with server.services.database.transaction() as conn:
        job_id = await enqueue(conn, Note(text="personal data"))
        await conn.execute("update procrastinate_jobs set status = 'failed', attempts = 5 where id = $1", job_id)
    return str(job_id)


async def failed_webhook(server: Server) -> str:
    now = server.services.clock.now("default")
    new = NewWebhook("default", "pay", "main", None, None, {}, b"personal data")
    async with server.services.database.transaction() as conn:
        await inbox.receive(conn, new, now=now)
        webhook_id: str = await conn.fetchval("select webhook_id from webhooks")
        await inbox.finish(conn, webhook_id, now=now, error="personal data")
    return webhook_id


def account(secret: str) -> Any:
    return {"value": {"platform": "vendor_b_llm", "api_key": secret}, "comment": "a new key"}


def masked(revision: int) -> Any:
    return {"revision": revision, "value": {"platform": "vendor_b_llm", "api_key": MARK}}


def held(job: str = "note") -> Any:
    return {"job": job, "status": "failed", "attempts": 5}


async def needs_reason(server: Server, method: str, path: str, body: Any, *, token: str) -> None:
    newest = await last_id(server)
    for reason in ("", INVISIBLE):
        status, answer = await call(server, method, path, body, token=token, X_Parley_Reason=reason)
        message = "invalid_parameter: X-Parley-Reason is required"
        assert (status, answer and answer.get("error", {}).get("message")) == (400, message), path
    assert await last_id(server) == newest


async def test_every_changing_row_leaves_one_row_with_before_and_after_and_no_secret(server: Server) -> None:
    _, added = await call(server, "POST", OPERATORS, {"name": "ada", "role": "admin"})
    first, second = await held_job(server), await held_job(server)
    webhook_id = await failed_webhook(server)
    other, _ = await server.login()
    of_other, of_other_path = ("default", "user", other), f"/admin/api/users/default/{other}"
    sink = {"stream": "crm", "events": ["account"]}
    await server.services.configs.put("default", "events", "crm", sink, author="test", origin=COMMAND)
    uid, _ = await server.login()
    withdrawal_id = await unknown_withdrawal(server, uid)
    coins = {"type": "consumable", "asset": "coins", "quantity": 100}
    await server.services.configs.put("default", "products", "coins", coins, author="test", origin=COMMAND)
    taken = {"name": "coins", "subscription": "", "quantity": -1}
    bob, of_bob = f"{OPERATORS}/bob", (None, "operator", "bob")
    future = "2090-01-01T00:00:00Z"
    columns = "app_id, board, starts_at, descending, state"
    values = "('default', 'race', '2090-01-01Z', true, 'closed')"
    await sql(server, f"insert into leaderboard_periods ({columns}) values {values}")
    viewer, editor = {"role": "viewer", "expires_at": None}, {"role": "editor", "expires_at": future}
    config, of_sink = ("default", "vendor_accounts", "main"), ("default", "events", "crm")
    of_user, new_bob = ("default", "user", uid), {"name": "bob", "role": "viewer"}
    recipient = recipient_of("ada@example.com", "default", keyring=server.services.keyring)
    suppressed = ("default", "suppression", recipient)
    steps: list[tuple[str, str, Any, str, tuple[Any, str, str], Any, Any]] = [
        ("PUT", ACCOUNT, account(SECRETS[0]), "config.put", config, None, masked(1)),
        ("PUT", ACCOUNT, account(SECRETS[1]), "config.put", config, masked(1), masked(2)),
        ("POST", f"{ACCOUNT}/rollback", {"revision": 1}, "config.rollback", config, masked(2), masked(3)),
        ("DELETE", ACCOUNT, None, "config.delete", config, masked(3), None),
        ("PUT", ACCOUNT, account(SECRETS[0]), "config.put", config, None, masked(5)),
        (
            *("POST", f"/admin/api/jobs/held/{first}/retry", None, "job.retry", (None, "job", first)),
            *(held(), {"job": "note", "status": "todo", "attempts": 0}),
        ),
        ("POST", f"/admin/api/users/default/{uid}/export", None, "user.export", of_user, None, None),
        (
            *("POST", f"/admin/api/webhooks/{webhook_id}/replay", None),
            *("webhook.replay", ("default", "webhook", webhook_id)),
            *({"source": "pay", "status": "failed"}, {"source": "pay", "status": "received"}),
        ),
        ("POST", "/admin/api/events/default/crm/retry", {}, "events.retry", of_sink, None, {"events": 1}),
        ("PUT", SUPPRESSION, NEWS, "suppression.add", suppressed, None, NEWS),
        ("DELETE", f"{SUPPRESSION}?strategy=news", None, "suppression.remove", suppressed, REMOVED, None),
        (
            *("POST", f"/admin/api/users/default/{uid}/assets", {"product": "coins"}),
            *("asset.grant", of_user, None),
            {"asset": "coins", "quantity": 100, "ends_at": None, "change": {"product": "coins"}},
        ),
        (
            *("PATCH", f"/admin/api/users/default/{uid}/assets", {"name": "coins", "quantity": -1}),
            *("asset.adjust", of_user, {"asset": "coins", "quantity": 100, "ends_at": None}),
            {"asset": "coins", "quantity": 99, "ends_at": None, "change": taken},
        ),
        (
            *("POST", f"/admin/api/withdrawals/default/{withdrawal_id}/settle", {"outcome": "failed"}),
            *("withdrawal.settle", ("default", "withdrawal", withdrawal_id)),
            {"user_id": uid, "amount": "1.00 USD", "state": "unknown", "reason": ""},
            {"user_id": uid, "amount": "1.00 USD", "state": "failed", "reason": "withdraw.not_paid"},
        ),
        ("POST", f"{of_other_path}/end_sessions", None, "user.end_sessions", of_other, None, {"ended_sessions": 1}),
        ("POST", f"{of_other_path}/freeze", None, "user.freeze", of_other, None, {"status": "frozen"}),
        ("POST", f"{of_other_path}/recover", None, "user.recover", of_other, None, {"status": "active"}),
        (
            *("POST", f"{of_other_path}/ban", {"until": future, "reason": "spam"}, "user.ban", of_other),
            *({"banned": False}, {"banned": True, "until": future, "reason": "spam"}),
        ),
        (
            *("POST", f"{of_other_path}/unban", None, "user.unban", of_other),
            *({"banned": True, "until": future, "reason": "spam"}, {"banned": False}),
        ),
        ("POST", f"{of_other_path}/erase", None, "user.erase", of_other, None, {"status": "deactivated"}),
        ("DELETE", f"/admin/api/jobs/held/{second}", None, "job.drop", (None, "job", second), held(), None),
        ("POST", OPERATORS, new_bob, "operator.add", of_bob, None, viewer),
        (
            *("POST", f"/admin/api/leaderboards/default/race/{future}/rewards", None),
            *("board.reward", ("default", "leaderboards", "race"), None, {"period": future}),
        ),
        ("PUT", bob, editor, "operator.change", of_bob, viewer, editor),
        ("POST", f"{bob}/rotate", None, "operator.rotate", of_bob, editor, editor),
        ("DELETE", bob, None, "operator.remove", of_bob, editor, None),
    ]
    seen, tokens = set(), [ADMIN_TOKEN, added["token"]]
    for number, (method, path, body, action, subject, before, after) in enumerate(steps):
        newest = await last_id(server)
        request_id = f"request-{number}"
        options = {"token": added["token"], "X_Request_Id": request_id, "X_Parley_Reason": f"reason {number}"}
        if action not in WITHOUT_HEADER:
            await needs_reason(server, method, path, body, token=added["token"])
        options["Idempotency_Key"] = request_id
        status, answer = await call(server, method, path, body, **options)
        assert status == 200, answer
        tokens += [answer["token"]] if answer and "token" in answer else []

        (row,) = [row for row in await audit(server, size=5) if row["audit_id"] > newest]
        assert (row["actor"], row["operator_id"]) == ("ada", added["operator"]["operator_id"])
        assert (row["action"], row.get("app"), row["kind"], row["name"]) == (action, *subject)
        for side, expected in (("before", before), ("after", after)):
            found = row.get(side)
            if subject[1] == "operator" and found is not None:
                assert found.pop("operator_id")
            assert found == expected, (action, side)
        assert (row["request_id"], row["address"], row["reason"]) == (request_id, "192.0.2.1", f"reason {number}")
        seen |= {
            (method, pattern) for pattern in CHANGING.get(method, ()) if matches(pattern, path.partition("?")[0])
        }

    assert seen | ELSEWHERE.keys() == {
        (method, pattern) for method, patterns in CHANGING.items() for pattern in patterns
    }
    stored = await sql(server, "select string_agg(audit::text, '') from audit")
    assert not [secret for secret in (*SECRETS, *tokens, "personal data") if secret in stored]
    _, history = await call(server, "GET", f"{ACCOUNT}/revisions")
    assert {row["author"] for row in history["revisions"]} == {"ada"}


async def test_repeat_under_a_key_leaves_no_second_row_and_keys_belong_to_operators(server: Server) -> None:
    tokens = []
    for name in ("ada", "bob"):
        _, added = await call(server, "POST", OPERATORS, {"name": name, "role": "editor"})
        tokens.append(added["token"])
    retry = ("POST", f"/admin/api/jobs/held/{await held_job(server)}/retry")
    for token, expected in ((tokens[0], 200), (tokens[0], 200), (tokens[1], 404), (ADMIN_TOKEN, 404)):
        assert (await call(server, *retry, token=token, Idempotency_Key="retry-1"))[0] == expected
    (row,) = await audit(server, action="job.retry")
    assert row["actor"] == "ada"


async def test_change_that_is_refused_or_rolled_back_leaves_no_row(server: Server, tmp_path: Path) -> None:
    configs = server.services.configs
    await call(server, "PUT", ACCOUNT, account(SECRETS[0]))
    await call(server, "POST", OPERATORS, {"name": "ada", "role": "viewer"})
    newest = await last_id(server)

    assert (await call(server, "PUT", ACCOUNT, {"value": {"platform": 1}}))[0] == 400
    assert (await call(server, "PUT", ACCOUNT, account(SECRETS[1]), If_Match="7"))[0] == 412
    assert (await call(server, "PUT", ACCOUNT, account(SECRETS[1]), X_Parley_Reason="x" * 501))[0] == 400
    assert (await call(server, "POST", f"{ACCOUNT}/rollback", {"revision": 9}))[0] == 404
    assert (await call(server, "DELETE", VOICE))[0] == 404
    assert (await call(server, "POST", f"{VOICE}/validate", {"value": {}}))[0] == 200
    assert (await call(server, "DELETE", "/admin/api/jobs/held/1"))[0] == 404
    assert (await call(server, "POST", OPERATORS, {"name": "ada", "role": "admin"}))[0] == 409
    assert (await call(server, "DELETE", f"{OPERATORS}/bob"))[0] == 404

    for name, text in (("a", "account: main\n"), ("b", "speed: 2\n")):
        path = tmp_path / "default" / "speech" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with pytest.raises(ServiceError):  # The first file is fine, the second one is not.
        await import_folder(configs, tmp_path, author="test", env={})
    path.unlink()
    await import_folder(configs, tmp_path, author="test", env={}, dry_run=True)
    assert await last_id(server) == newest

    await import_folder(configs, tmp_path, author="test", env={})
    (row,) = await audit(server, size=1)
    assert (row["actor"], row["action"], row["name"], row["address"]) == ("command", "config.put", "a", "")
    assert "operator_id" not in row


async def test_a_change_fails_if_its_audit_row_cannot_be_stored(server: Server) -> None:
    _, added = await call(server, "POST", OPERATORS, {"name": "ada", "role": "viewer"})
    job_id = await held_job(server)
    await sql(server, "alter table audit rename to lost")
    for method, path, body in (
        ("PUT", ACCOUNT, account(SECRETS[0])),
        ("DELETE", f"/admin/api/jobs/held/{job_id}", None),
        ("POST", OPERATORS, {"name": "bob", "role": "admin"}),
        ("POST", f"{OPERATORS}/ada/rotate", None),
    ):
        assert (await call(server, method, path, body))[0] == 500, path
    await sql(server, "alter table lost rename to audit")
    assert (await call(server, "GET", ACCOUNT))[0] == 404
    assert (await call(server, "GET", "/admin/api/jobs/held"))[1]["jobs"][0]["job_id"] == int(job_id)
    assert (await call(server, "GET", "/admin/api/kinds", token=added["token"]))[0] == 200
    assert [row["name"] for row in (await call(server, "GET", OPERATORS))[1]["operators"]] == ["ada"]


async def test_each_concurrent_change_leaves_a_row_in_order(server: Server) -> None:
    voice = {"value": {"account": "main"}}
    await call(server, "PUT", VOICE, voice)
    rivals = await asyncio.gather(*(call(server, "PUT", VOICE, voice, If_Match="1") for _ in range(6)))
    assert sorted(status for status, _ in rivals) == [200, *[412] * 5]
    await asyncio.gather(*(call(server, "PUT", VOICE, voice) for _ in range(6)))

    rows = await audit(server, kind="speech", name="voice")
    assert [row["after"]["revision"] for row in rows] == list(range(8, 0, -1))
    assert [row["before"]["revision"] for row in rows[:-1]] == list(range(7, 0, -1))

    await call(server, "POST", OPERATORS, {"name": "ada", "role": "viewer"})
    removed = await asyncio.gather(*(call(server, "DELETE", f"{OPERATORS}/ada") for _ in range(4)))
    assert sorted(status for status, _ in removed) == [200, 404, 404, 404]
    assert len(await audit(server, action="operator.remove")) == 1


async def test_root_is_the_actor_and_a_comment_is_the_reason(server: Server) -> None:
    await call(server, "PUT", ACCOUNT, account(SECRETS[0]), X_Admin_Author="carl", X_Parley_Reason="")
    (row,) = await audit(server, size=1)
    assert (row["actor"], row["reason"]) == ("root", "a new key")
    _, config = await call(server, "GET", ACCOUNT)
    assert config["author"] == "carl"

    _, added = await call(server, "POST", OPERATORS, {"name": "ada", "role": "editor"})
    await call(server, "PUT", ACCOUNT, account(SECRETS[1]), token=added["token"], X_Admin_Author="carl")
    assert (await call(server, "GET", ACCOUNT))[1]["author"] == "ada"


async def test_large_value_is_replaced_by_its_size(server: Server) -> None:
    value = {"value": {"account": "main", "options": {"text": "x" * 20_000}}}
    assert (await call(server, "PUT", VOICE, value))[0] == 200
    (row,) = await audit(server, size=1)
    assert row["after"]["revision"] == 1
    assert 20_000 < row["after"]["value"]["omitted_bytes"] < 20_100


async def test_changes_of_operators_are_listed_for_admins_only(server: Server) -> None:
    tokens = {}
    for role in ("viewer", "editor", "admin"):
        tokens[role] = (await call(server, "POST", OPERATORS, {"name": f"the-{role}", "role": role}))[1]["token"]
        await call(server, "PUT", VOICE, {"value": {"account": "main"}})

    async def kinds(token: str, query: str) -> list[str]:
        _, answer = await call(server, "GET", f"/admin/api/audit?{query}", token=token)
        return [row["kind"] for row in answer["changes"]]

    for token in (tokens["viewer"], tokens["editor"]):
        assert await kinds(token, "size=3") == ["speech"] * 3
        assert await kinds(token, "kind=operator") == await kinds(token, "name=the-admin") == []
    for token in (tokens["admin"], ADMIN_TOKEN):
        assert await kinds(token, "size=4") == ["speech", "operator"] * 2
        assert await kinds(token, "kind=operator") == ["operator"] * 3


async def test_rows_are_filtered_and_paged(server: Server) -> None:
    _, added = await call(server, "POST", OPERATORS, {"name": "ada", "role": "editor"})
    for _ in range(3):
        await call(server, "PUT", VOICE, {"value": {"account": "main"}}, token=added["token"])
    await call(server, "PUT", "/admin/api/configs/two/apps/default", {"value": {"title": "Two"}})

    mine = await audit(server, actor="ada")
    assert [row["action"] for row in mine] == ["config.put"] * 3
    assert await audit(server, actor=added["operator"]["operator_id"]) == mine
    _, page = await call(server, "GET", "/admin/api/audit?actor=ada&size=2")
    assert page == {"changes": mine[:2], "next": mine[1]["audit_id"]}
    _, page = await call(server, "GET", f"/admin/api/audit?actor=ada&size=2&before={page['next']}")
    assert page == {"changes": mine[2:]}
    assert [row["kind"] for row in await audit(server, app="two")] == ["apps"]
    assert [row["name"] for row in await audit(server, action="operator.add")] == ["ada"]
    assert {row["audit_id"] for row in await audit(server, from_=mine[1]["at"], to=mine[0]["at"])} == {
        mine[1]["audit_id"]
    }
    for query in ("from=today", "size=101", "before=last", "to=2030-01-01"):
        status, answer = await call(server, "GET", f"/admin/api/audit?{query}")
        assert (status, answer["error"]["message"].split()[1]) == (400, query.partition("=")[0])
