"""An operator exports all data of a user to a file, which is deleted after some time."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from app.accounts.leaving.export import export_user
from app.services import Services
from app.work.worker import run_jobs
from storage.accounts import emails, login_failures, login_networks
from storage.jobs.jobs import ExportUser
from streams.tasks import background
from tests.app.ai.conftest import Talk
from tests.app.callers import work_off
from tests.app.operator_calls import OPERATORS
from tests.app.operator_calls import call as as_operator
from tests.calendar.clock import utc_now
from tests.running.servers import ADMIN_TOKEN, Server
from tests.waiting import until

KEYS = """account identities pending_emails earlier_emails sessions login_networks asset_entries share_groups
wallet_orders wallet_subscriptions leaderboard_scores card_payments card_subscriptions operator_refunds withdrawals
mails predictions image_tasks login_failures conversations speech"""
MANY = 130
"""More records than one page, and more conversations than one page."""


@pytest.fixture
async def worker(services: Services) -> AsyncIterator[None]:
    async with background(run_jobs(services, scheduled=False, poll_s=0.05)):
        yield


async def call(server: Server, method: str, uid: str, rest: str = "") -> tuple[int, Any]:
    url = f"{server.url}/admin/api/users/default/{uid}/export{rest}"
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "X-Parley-Reason": "asked by letter"}
    async with server.http.request(method, url, headers=headers) as response:
        return response.status, await response.json()


async def finished(server: Server, uid: str) -> dict[str, Any]:
    async def is_finished() -> Any:
        _, export = await call(server, "GET", uid)
        return export if export.get("status") == "finished" else None

    await until(is_finished)
    status, link = await call(server, "POST", uid, "/link")
    assert status == 200, link
    return link


async def status_of(server: Server, url: str) -> int:
    async with server.http.get(url) as response:
        return response.status


async def add_conversations(services: Services, talk: Talk) -> None:
    """Copy the conversation of the user, and its only record, many times."""
    async with services.database.connection() as conn:
        await conn.execute(
            "insert into conversations (app_id, conversation_id, uid)"
            " select 'default', md5(n::text), $1 from generate_series(1, $2) n",
            talk.uid,
            MANY,
        )
        await conn.execute(
            "insert into conversation_records (app_id, conversation_id, record_id, status, content, stream_id)"
            " select app_id, conversation_id, n, status, content, stream_id"
            " from conversation_records, generate_series(2, $2) n where conversation_id = $1",
            talk.conversation_id,
            MANY,
        )


@pytest.mark.usefixtures("worker")
async def test_export_has_all_data_of_the_user_and_is_deleted_in_time(
    talk: Talk, server: Server, services: Services, strategy: Callable[..., Any]
) -> None:
    await strategy("one", "say:Fine")
    await talk.turn("How are you?", "one")
    await add_conversations(services, talk)
    async with services.database.connection() as conn:
        await login_networks.remember(
            conn, "default", talk.uid, network="198.51.100.0/24", now=services.clock.now("default")
        )
        await emails.set_current(
            conn,
            "default",
            talk.uid,
            address="countess@example.org",
            old="",
            now=services.clock.now("default"),
            weak=True,
        )
        await emails.set_pending(
            conn, "default", talk.uid, address="ada@example.com", now=services.clock.now("default")
        )
        await conn.execute(
            "insert into earlier_emails values ('default', $1, 'countess@example.com', now())", talk.uid
        )
        await login_failures.add(
            conn,
            "default",
            request_id="r",
            operation="login",
            platform="email_code",
            social_id="countess@example.com",
            uid=None,
            error_type="account.code_invalid",
            steps=[],
            now=services.clock.now("default"),
        )
    count = 10_001 if services.settings.s3_bucket is None else 20  # Each takes some milliseconds in a bucket.
    speech = [f"speech/default/20261122/{talk.uid}/{n}.mp3" for n in range(10_000, 10_000 + count)]
    speech.append(f"speech/default/20261123/{talk.uid}/one.mp3")
    await store_empty_files(services, speech)

    status, begun = await call(server, "POST", talk.uid)
    assert (status, begun["status"]) == (200, "running")
    export = await finished(server, talk.uid)
    async with server.http.get(export["url"]) as response:
        assert response.status == 200
        data = await response.json()

    assert list(data) == KEYS.split()
    assert data["account"]["uid"] == talk.uid
    proofs = [(identity["platform"], identity["weakly_proven"]) for identity in data["identities"]]
    assert proofs == [("device", False), ("email", True)]
    assert [known["network"] for known in data["login_networks"]] == ["198.51.100.0/24"]
    assert [waiting["address"] for waiting in data["pending_emails"]] == ["ada@example.com"]
    assert [earlier["address"] for earlier in data["earlier_emails"]] == ["countess@example.com"]
    [failure] = data["login_failures"]
    assert (failure["social_id"], failure["error_type"]) == ("countess@example.com", "account.code_invalid")
    assert data["speech"] == speech
    assert len({one["conversation_id"] for one in data["conversations"]}) == len(data["conversations"]) == MANY + 1
    (own,) = (one for one in data["conversations"] if one["conversation_id"] == talk.conversation_id)
    assert [record["record_id"] for record in own["records"]] == list(range(MANY, 0, -1))
    texts = [message["content"][0]["text"] for message in own["records"][-1]["content"]]
    assert texts == ["How are you?", "Fine"]

    later = utc_now() + timedelta(days=8)
    async with server.http.post(f"{server.url}/dev/clock", json={"app": "default", "at": later.isoformat()}):
        pass
    await until(lambda: is_gone(server, talk.uid))
    await until(lambda: has_no_exports(services))


async def store_empty_files(services: Services, keys: list[str]) -> None:
    for key in keys:
        if services.settings.s3_bucket is not None:
            await services.objects.put(key, b"", content_type="audio/mpeg")
        else:  # Much faster than `put`, which waits for the disk.
            (path := services.settings.data_dir / "objects" / key).parent.mkdir(parents=True, exist_ok=True)
            path.touch()


async def has_no_exports(services: Services) -> bool:
    return not await services.objects.keys("exports/", limit=1)


async def is_gone(server: Server, uid: str) -> bool:
    return (await call(server, "GET", uid))[0] == 404


async def test_user_has_one_export_at_a_time_and_a_new_one_replaces_it(
    talk: Talk, server: Server, services: Services
) -> None:
    _, first = await call(server, "POST", talk.uid)
    assert (await call(server, "POST", talk.uid))[1] == first
    async with services.database.connection() as conn:
        (row,) = await conn.fetch("select args from procrastinate_jobs")
    job = ExportUser.of(row["args"])
    await export_user(services, job)
    await export_user(services, job)
    done = (await call(server, "POST", talk.uid, "/link"))[1]

    _, second = await call(server, "POST", talk.uid)
    assert second["status"] == "running"
    async with background(run_jobs(services, scheduled=False, poll_s=0.05)):
        again = await finished(server, talk.uid)
        await until(lambda: is_removed(server, done["url"]))
    assert await status_of(server, again["url"]) == 200


async def is_removed(server: Server, url: str) -> bool:
    return await status_of(server, url) == 404


@pytest.mark.parametrize(
    "end", ["update procrastinate_jobs set status = 'failed'", "delete from procrastinate_jobs"]
)
async def test_export_whose_job_is_held_or_was_deleted_has_failed_and_can_be_requested_again(
    server: Server, end: str
) -> None:
    uid, _ = await server.login()
    assert (await call(server, "POST", uid))[0] == 200
    async with server.services.database.connection() as conn:
        await conn.execute(end)
    _, failed = await call(server, "GET", uid)
    error = "the job that writes the file has failed in all attempts, or was deleted"
    assert (failed["status"], failed["error"]) == ("failed", error)
    async with background(run_jobs(server.services, scheduled=False, poll_s=0.05)):
        assert (await call(server, "POST", uid))[1]["status"] == "running"
        assert (await finished(server, uid))["url"]


async def test_each_link_to_an_export_needs_an_admin_and_a_reason_is_audited_and_ends_in_minutes(
    server: Server,
) -> None:
    uid, _ = await server.login()
    path = f"/admin/api/users/default/{uid}/export"
    tokens = {}
    for role in ("viewer", "editor", "admin"):
        _, added = await as_operator(
            server, "POST", OPERATORS, {"name": f"{role}-{uid[-12:]}", "role": role}, reason="x"
        )
        tokens[role] = added["token"]
    for role in ("viewer", "editor"):
        for method, rest in (("POST", ""), ("GET", ""), ("POST", "/link")):
            status, answer = await as_operator(server, method, path + rest, token=tokens[role], reason="x")
            assert (status, answer["error"]["error_type"]) == (403, "permission_denied"), (role, method, rest)
    admin = tokens["admin"]
    assert (await as_operator(server, "POST", f"{path}/link", token=admin, reason="x"))[0] == 404
    assert (await as_operator(server, "POST", path, token=admin, reason="asked by letter"))[0] == 200
    assert (await as_operator(server, "POST", f"{path}/link", token=admin, reason="x"))[0] == 409
    await work_off(server.services)
    status, state = await as_operator(server, "GET", path, token=admin)
    assert (status, state["status"], "url" in state) == (200, "finished", False)
    status, answer = await as_operator(server, "POST", f"{path}/link", token=admin, reason="")
    assert (status, answer["error"]["message"]) == (400, "invalid_parameter: X-Parley-Reason is required")
    status, link = await as_operator(server, "POST", f"{path}/link", token=admin, reason="for the letter")
    assert (status, await status_of(server, link["url"])) == (200, 200)
    left = int(parse_qs(urlsplit(link["url"]).query)["e"][0]) - utc_now().timestamp()
    assert 0 < left <= 600
    _, audit = await as_operator(server, "GET", f"/admin/api/audit?kind=user&name={uid}")
    assert [(row["actor"], row["action"], row["reason"]) for row in audit["changes"]] == [
        (f"admin-{uid[-12:]}", "user.export_read", "for the letter"),
        (f"admin-{uid[-12:]}", "user.export", "asked by letter"),
    ]


async def test_unknown_user_has_no_export(server: Server) -> None:
    for method, rest in (("POST", ""), ("GET", ""), ("POST", "/link")):
        status, answer = await call(server, method, "nobody", rest)
        assert (status, answer["error"]["error_type"]) == (404, "item_not_found")
