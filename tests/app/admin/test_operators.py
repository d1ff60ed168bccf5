"""Each operator has a role and a token."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.http.callers.caller import Access
from app.http.callers.operators import FAILURES
from app.routes import ROUTES
from storage.jobs.jobs import enqueue
from storage.operators.operators import PREFIX, Role
from storage.tasks.predictions import CancelPrediction
from storage.tokens import new_token
from streams.tasks import background
from tests.app.operator_calls import OPERATORS, call
from tests.running.servers import ADMIN_TOKEN, Databases, Server, new_server
from tests.waiting import until

ROWS = [row for row in ROUTES if row.area.access is Access.ADMIN]
ENDLESS = "/events"
"""The end of the paths whose responses last. Callers whose role is too low get an error there too."""
PERSONAL = tuple(f"/admin/api/{path}" for path in ("users", "webhooks/", "login_failures", "suppressions"))
"""Paths with data of persons."""
PRIVATE = ("/admin/api/conversations/",)
"""Paths with what users have said."""
FINAL = ("/erase", "/export", "/export/link")
"""The ends of the paths of what cannot be undone, and of the files with what users have said."""
ORDER = [Role.VIEWER, Role.EDITOR, Role.ADMIN]
FUTURE = "2090-01-01T00:00:00Z"
EXPIRED = "auth_failed: the token in Authorization has expired"
REFUSED = "auth_failed: Authorization is missing or wrong"
LIMITED = (429, "api_rate_limit: too many failed calls from this address")


@pytest.fixture
async def server(databases: Databases, tmp_path: Path) -> AsyncIterator[Server]:
    """The test acts as a proxy, so that it can call from several addresses."""
    async with new_server(databases, tmp_path, trusted_proxies=("127.0.0.1/32",)) as running:
        yield running


async def refusal(server: Server, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, str]:
    status, answer = await call(server, method, path, body, **options)
    return status, answer["error"]["message"]


async def add(server: Server, name: str, role: str, **fields: Any) -> str:
    status, answer = await call(server, "POST", OPERATORS, {"name": name, "role": role, **fields})
    assert status == 200, answer
    token: str = answer["token"]
    return token


async def sql(server: Server, statement: str) -> Any:
    async with server.services.database.connection() as conn:
        return await conn.fetchval(statement)


def test_reading_needs_viewer_changes_and_data_of_users_editor_and_private_texts_and_operators_admin() -> None:
    assert ROWS
    for row in ROWS:
        if row.path.startswith((OPERATORS, *PRIVATE)) or row.path.endswith(FINAL):
            assert row.area.role is Role.ADMIN, row.path
        elif row.path.startswith(PERSONAL):
            assert row.area.role is Role.EDITOR, row.path
        elif row.path == "/admin/api/session":
            assert row.area.role is Role.VIEWER, "each operator may sign out"
        else:
            assert row.area.role is (Role.VIEWER if row.method == "GET" else Role.EDITOR), row.path


async def test_each_row_admits_exactly_the_roles_that_include_its_own(server: Server) -> None:
    tokens = {role: await add(server, f"the-{role}", role) for role in ORDER}
    for row in ROWS:
        assert row.area.role is not None
        path = re.sub(r"\{\w+\}", "none", row.path)
        assert await refusal(server, row.method, path, {}, token=None) == (401, REFUSED), path
        for role, token in (*tokens.items(), (Role.ADMIN, ADMIN_TOKEN)):
            if row.path.endswith(ENDLESS) and ORDER.index(role) >= ORDER.index(row.area.role):
                continue
            status, answer = await call(server, row.method, path, {}, token=token)
            if ORDER.index(role) >= ORDER.index(row.area.role):
                assert status in {200, 400, 404}, (row.method, path, role, answer)
            else:
                message = answer["error"]["message"]
                assert (status, message) == (403, f"permission_denied: this requires the role {row.area.role}"), (
                    path
                )


async def test_a_token_is_recognizable_shown_once_and_not_stored(server: Server) -> None:
    token = await add(server, "ada@example.com", "viewer")

    assert re.fullmatch(r"parley_op_[0-9A-Za-z]{49}", token)
    stored = await sql(server, "select string_agg(operators::text, '') from operators")
    assert token not in stored
    status, answer = await call(server, "GET", OPERATORS)
    (row,) = answer["operators"]
    assert (status, row["name"], row["role"], row["expired"]) == (200, "ada@example.com", "viewer", False)
    assert token not in str(answer)


async def test_operators_are_listed_in_pages_newest_first(server: Server) -> None:
    for name in ("ada", "bob", "carl"):
        await add(server, name, "viewer")
        await asyncio.sleep(0.002)  # Ids sort by milliseconds.
    _, first = await call(server, "GET", f"{OPERATORS}?size=2")
    _, last = await call(server, "GET", f"{OPERATORS}?size=2&before={first['next']}")
    assert [[row["name"] for row in page["operators"]] for page in (first, last)] == [["carl", "bob"], ["ada"]]
    assert "next" not in last


async def test_operator_and_root_can_read_their_identity(server: Server) -> None:
    token = await add(server, "ada", "editor", expires_at=FUTURE)

    _, answer = await call(server, "GET", "/admin/api/self", token=token)
    assert (answer["actor"], answer["role"], answer["operator"]["expires_at"]) == ("ada", "editor", FUTURE)
    assert await call(server, "GET", "/admin/api/self") == (200, {"actor": "root", "role": "admin"})


async def test_change_rotation_and_removal_take_effect_with_the_next_call(server: Server) -> None:
    ada = f"{OPERATORS}/ada"
    token = await add(server, "ada", "admin")
    assert (await call(server, "GET", OPERATORS, token=token))[0] == 200

    status, answer = await call(server, "PUT", ada, {"role": "viewer", "expires_at": FUTURE})
    assert (status, answer["operator"]["role"], answer["operator"]["expires_at"]) == (200, "viewer", FUTURE)
    assert (await call(server, "GET", OPERATORS, token=token))[0] == 403

    _, rotated = await call(server, "POST", f"{ada}/rotate")
    assert rotated["operator"]["expires_at"] == FUTURE
    assert await refusal(server, "GET", "/admin/api/kinds", token=token) == (401, REFUSED)
    assert (await call(server, "GET", "/admin/api/kinds", token=rotated["token"]))[0] == 200

    assert await call(server, "DELETE", ada) == (200, {})
    assert await refusal(server, "GET", "/admin/api/kinds", token=rotated["token"]) == (401, REFUSED)
    assert (await call(server, "DELETE", ada))[0] == 404


async def test_expired_token_is_refused_until_the_expiry_is_changed_or_the_token_is_rotated(server: Server) -> None:
    token = await add(server, "ada", "viewer", expires_at=FUTURE)
    assert (await call(server, "GET", "/admin/api/kinds", token=token))[0] == 200

    await sql(server, "update operators set expires_at = now() - interval '1 second'")
    assert await refusal(server, "GET", "/admin/api/kinds", token=token) == (401, EXPIRED)
    _, answer = await call(server, "GET", OPERATORS)
    assert [row["expired"] for row in answer["operators"]] == [True]

    past = (400, "invalid_parameter: expires_at must be in the future")
    assert await refusal(server, "POST", f"{OPERATORS}/ada/rotate") == past
    await call(server, "PUT", f"{OPERATORS}/ada", {"role": "editor"})
    assert await refusal(server, "GET", "/admin/api/kinds", token=token) == (401, EXPIRED)
    await call(server, "PUT", f"{OPERATORS}/ada", {"role": "editor", "expires_at": None})
    assert (await call(server, "GET", "/admin/api/kinds", token=token))[0] == 200


async def test_last_use_is_stored_without_a_write_per_call(server: Server) -> None:
    version = "select xmin::text || coalesce(last_used_at::text, '-') from operators"
    token = await add(server, "ada", "viewer")
    unused = await sql(server, version)
    for _ in range(3):
        await asyncio.gather(*(call(server, "GET", "/admin/api/kinds", token=token) for _ in range(5)))
    first = await sql(server, version)
    assert first != unused
    await call(server, "GET", "/admin/api/kinds", token=token)
    assert await sql(server, version) == first

    await sql(server, "update operators set last_used_at = now() - interval '61 seconds'")
    await call(server, "GET", "/admin/api/kinds", token=token)
    assert await sql(server, "select last_used_at > now() - interval '30 seconds' from operators")


async def test_database_that_refuses_writes_locks_no_operator_out(server: Server) -> None:
    token = await add(server, "ada", "viewer")
    await sql(server, "create rule read_only as on update to operators do instead select 1 / 0")
    assert (await call(server, "GET", "/admin/api/kinds", token=token))[0] == 200
    await sql(server, "drop rule read_only on operators")


WRONG = [
    ({"name": "root"}, "name must not be root: the audit log uses this name"),
    ({"name": "seed"}, "name must not be seed: the audit log uses this name"),
    ({"name": "command"}, "name must not be command: the audit log uses this name"),
    ({"name": "a b"}, "name must be 1 to 64 of A-Z a-z 0-9 . _ @ + - and begin with a letter or digit"),
    ({"name": "x" * 65}, "name must be 1 to 64 of A-Z a-z 0-9 . _ @ + - and begin with a letter or digit"),
    ({"role": "owner"}, "role must be one of 'viewer', 'editor' or 'admin'"),
    ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at must be in the future"),
    ({"expires_at": "2090-01-01T00:00:00"}, "expires_at must be a time such as 2030-01-31T12:00:00Z"),
    ({"expires_at": "9999-12-31T23:59:59-12:00"}, "expires_at must be a time such as 2030-01-31T12:00:00Z"),
    ({"expires_at": 1}, "expires_at must be a time such as 2030-01-31T12:00:00Z"),
]
"""Fields of an operator that are refused, and why."""


async def test_wrong_field_of_an_operator_is_named(server: Server) -> None:
    for fields, message in WRONG:
        body = {"name": "ada", "role": "viewer", **fields}
        assert await refusal(server, "POST", OPERATORS, body) == (400, f"invalid_parameter: {message}")


async def test_name_of_an_operator_is_unique(server: Server) -> None:
    body = {"name": "ada", "role": "viewer"}
    answers = await asyncio.gather(*(call(server, "POST", OPERATORS, body) for _ in range(6)))
    assert sorted(status for status, _ in answers) == [200, *[409] * 5]
    taken = next(answer for status, answer in answers if status == 409)
    assert taken["error"]["message"] == "invalid_operation: operator ada exists already"


async def test_failed_calls_are_limited_per_address_and_lock_no_operator_out(server: Server) -> None:
    token = await add(server, "ada", "viewer")
    assert (await call(server, "GET", "/admin/api/kinds"))[0] == 200
    guesses = [new_token(PREFIX), "a wrong root token"] * (FAILURES.count // 2)
    for guess in guesses:
        assert await refusal(server, "GET", "/admin/api/kinds", token=guess) == (401, REFUSED)

    assert await refusal(server, "GET", "/admin/api/kinds", token="one more") == LIMITED
    assert await refusal(server, "GET", "/admin/api/kinds") == LIMITED
    assert (await call(server, "GET", "/admin/api/kinds", token=token))[0] == 200
    assert (await call(server, "GET", "/admin/api/kinds", address="192.0.2.2"))[0] == 200


async def test_concurrent_guesses_do_not_exceed_the_limit(server: Server) -> None:
    guesses = [new_token(PREFIX), "a wrong root token"] * FAILURES.count
    refusals = await asyncio.gather(*(refusal(server, "GET", "/admin/api/kinds", token=guess) for guess in guesses))
    compared = refusals.count((401, REFUSED))
    assert FAILURES.count <= compared < FAILURES.count + 10, "the limit grows by one in nine seconds"
    assert len(refusals) == compared + refusals.count(LIMITED)


async def test_guesses_from_an_address_over_its_limit_cost_no_query_each(server: Server) -> None:
    token, refusals = new_token(PREFIX), []
    for _ in range(FAILURES.count):
        await refusal(server, "GET", "/admin/api/kinds", token=token)

    async def guess() -> None:
        refusals.append(await refusal(server, "GET", "/admin/api/kinds", token=token))

    async def guess_concurrently() -> None:
        await asyncio.gather(*(guess() for _ in range(30)))

    async with background(guess_concurrently()) as guessing:
        async with server.services.database.transaction() as conn:
            await conn.execute("lock table operators")
            await until(
                lambda: len(refusals) >= 25
            )  # At most one call per second reads the digests, and waits here.
        await guessing
    assert refusals == [LIMITED] * 30


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("action=nope", "action must be one of "),
        (
            "kind=nope",
            "kind nope is neither a config kind nor one of job, mismatch, operator, order, suppression, user, ",
        ),
    ],
)
async def test_filter_that_can_match_nothing_is_refused(server: Server, query: str, message: str) -> None:
    status, answer = await call(server, "GET", f"/admin/api/audit?{query}")
    assert status == 400
    assert answer["error"]["message"].startswith(f"invalid_parameter: {message}")


async def test_prompts_in_held_jobs_are_shown_to_those_who_may_read_conversations(server: Server) -> None:
    job = CancelPrediction(
        app_id="default",
        uid="u",
        account="host",
        host_id=None,
        body='{"a":"secret"}',
        model=None,
        asked_at=0,
    )
    async with server.services.database.connection() as conn:
        await enqueue(conn, job)
        await conn.execute("update procrastinate_jobs set status = 'failed'")
    for role, shown in ((Role.VIEWER, {"private": True}), (Role.EDITOR, {"private": True}), (Role.ADMIN, job.body)):
        token = await add(server, f"{role.value}-1", role.value)
        status, answer = await call(server, "GET", "/admin/api/jobs/held", token=token)
        assert status == 200
        assert answer["jobs"][0]["message"] == job.model_dump() | {"body": shown}
