"""Operators read why jobs are held, and run those with the same cause again or drop them at once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest

from app.services import Services
from app.work.jobs import JobRow
from app.work.worker import run_jobs
from storage.configs.kinds.mail import MAIL
from storage.jobs import stalled_jobs
from storage.jobs.held import AT_ONCE
from storage.jobs.jobs import Job, enqueue
from storage.jobs.stalled_jobs import MAX_DEATHS
from streams.tasks import background
from streams.wire.errors import BackendUnavailable
from tests.app.notes import DEAD, Note, Notes, assign_to_worker, worker
from tests.app.operator_calls import call
from tests.running.servers import Server
from tests.waiting import until

HELD = "/admin/api/jobs/held"
AUDIT = "/admin/api/audit?kind=job"


class Letter(Job):
    task: ClassVar[str] = "letter"
    attempts: ClassVar[int] = 1
    app_id: str = "default"
    uid: str | None = None
    number: int = 0


class Walk(Job):
    task: ClassVar[str] = "walk"
    attempts: ClassVar[int] = 1
    timeout_s: ClassVar[float] = 0.01


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
def services(server: Server) -> Services:
    return server.services


async def deliver(services: Services, job: Letter) -> None:
    """Fail, in the way that depends on the number."""
    if job.number == 0:
        services.configs.required(MAIL, job.app_id, "missing")
    if job.number == 1:
        raise RuntimeError("the value of a statement")
    if job.number == 2:
        raise BackendUnavailable("\ud83d\0" + "x" * 1000)
    if job.number == 3:
        raise BackendUnavailable("refused <ada@example.com> and +49 170 1234567: 550 5.1.1")
    raise BackendUnavailable(f"the post office has lost letter {job.number}")


async def walk(_: Services, __: Walk) -> None:
    await asyncio.Event().wait()


@asynccontextmanager
async def post_office(services: Services) -> AsyncIterator[None]:
    jobs = [JobRow(Letter, deliver), JobRow(Walk, walk)]
    async with background(run_jobs(services, jobs=jobs, scheduled=False, poll_s=0.05)):
        yield


async def read(server: Server, path: str) -> Any:
    status, answer = await call(server, "GET", path)
    assert status == 200, answer
    return answer


async def held(server: Server, query: str = "") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (await read(server, f"{HELD}{query}"))["jobs"]
    return rows


async def hold(server: Server, services: Services, jobs: Sequence[Job]) -> None:
    """Run jobs until all are held."""
    async with services.database.transaction() as conn:
        for job in jobs:
            await enqueue(conn, job)
    async with post_office(services):
        await until(lambda: are_held(server, len(jobs)))


async def are_held(server: Server, count: int) -> bool:
    return len(await held(server, "?size=100")) == count


async def store_held(services: Services, count: int, *, task: str = "letter", message: Any = None) -> None:
    """Store held jobs as a version that did not store why."""
    async with services.database.connection() as conn:
        await conn.execute(
            "insert into procrastinate_jobs (queue_name, task_name, args, status)"
            " select 'parley', $1, $2, 'failed' from generate_series(1, $3)",
            task, message or {}, count,
        )  # fmt: skip


async def test_a_held_job_says_why_it_failed_for_whom_and_with_which_config(
    server: Server, services: Services
) -> None:
    uid, _ = await server.login()
    await hold(server, services, [Letter(uid=uid)])
    [row] = await held(server)
    assert (row["job"], row["app"], row["user_id"], row["attempts"]) == ("letter", "default", uid, 1)
    assert row["error_type"] == "config_invalid"
    assert "missing" in row["error"]
    assert row["configs"] == [{"app": "default", "kind": "mail", "name": "missing"}]
    assert row["process"] == services.heartbeat.process


async def test_the_text_of_an_unexpected_error_is_only_logged(server: Server, services: Services) -> None:
    await hold(server, services, [Letter(number=1), Walk()])
    found = {row["job"]: (row["error_type"], row["error"]) for row in await held(server)}
    assert found == {
        "letter": ("internal", "RuntimeError in tests/app/admin/test_jobs.py, deliver"),
        "walk": ("timeout", "unfinished after 0.01 s"),
    }


async def test_a_message_is_stored_without_what_cannot_be_and_addresses_of_users(
    server: Server, services: Services
) -> None:
    await hold(server, services, [Letter(number=2), Letter(number=3)])
    assert {row["error"] for row in await held(server)} == {"? " + "x" * 498, "refused <…> and …: 550 5.1.1"}


async def test_a_job_that_seems_to_kill_its_workers_says_so_until_it_fails_otherwise(
    server: Server, services: Services
) -> None:
    async with services.database.transaction() as conn:
        job_id = await enqueue(conn, Note())
        await conn.execute("update procrastinate_jobs set priority = $1", MAX_DEATHS - 1)
        await assign_to_worker(conn, job_id, heartbeat=DEAD)
        [stalled] = await stalled_jobs.find(conn, stalled_s=1)
    async with services.database.connection() as conn:
        await stalled_jobs.recover(conn, stalled, stalled_s=1)
    [row] = await held(server)
    assert (row["error_type"], row["error"]) == ("worker_died", "its workers died 10 times")
    assert "process" not in row
    notes = Notes()
    notes.failures = Note.attempts
    async with worker(services, notes):
        assert (await call(server, "POST", f"{HELD}/{job_id}/retry"))[0] == 200
        await notes.reach(Note.attempts)
        await until(lambda: are_held(server, 1))
    [row] = await held(server)
    assert row["error_type"] == "internal"


async def test_jobs_with_the_same_cause_are_one_group_which_runs_again_with_a_reason(
    server: Server, services: Services
) -> None:
    await hold(server, services, [Letter(), *(Letter(number=number) for number in range(7, 10))])
    groups = (await read(server, f"{HELD}/groups"))["groups"]
    assert [(group["error_type"], group["count"]) for group in groups] == [
        ("backend unavailable", 3),
        ("config_invalid", 1),
    ]
    lost = groups[0]
    assert lost["error"] == "the post office has lost letter 9"
    body = {"group": lost["group"]}
    status, answer = await call(server, "POST", f"{HELD}/retry", body, reason="")
    assert (status, answer["error"]["message"]) == (400, "invalid_parameter: X-Parley-Reason is required")
    done = await call(server, "POST", f"{HELD}/retry", body, reason="The post office has found them")
    assert done == (200, {"changed": 3, "remaining": 0})
    assert [row["error_type"] for row in await held(server)] == ["config_invalid"]
    counts = (await read(server, "/admin/api/jobs"))["jobs"]
    assert {row["status"]: row["count"] for row in counts} == {"todo": 3, "failed": 1}
    [entry] = (await read(server, AUDIT))["changes"]
    assert (entry["action"], entry["name"], entry["reason"]) == (
        "job.retry",
        lost["group"],
        "The post office has found them",
    )
    assert len(entry["before"]["jobs"]) == 3
    for group, changed in ((groups[1]["group"], 1), ("letter.none", 0)):
        done = await call(server, "POST", f"{HELD}/drop", {"group": group}, reason="Nobody waits for it")
        assert done == (200, {"changed": changed, "remaining": 0})
    async with services.database.connection() as conn:
        assert await conn.fetchval("select count(*) from job_failures") == 3, "it is deleted with its job"


async def test_a_group_is_changed_in_bounded_steps_and_each_job_once_by_one_of_two_operators(
    server: Server, services: Services
) -> None:
    await store_held(services, AT_ONCE + 200)
    body = {"group": "letter.unknown"}
    answers = await asyncio.gather(
        *(call(server, "POST", f"{HELD}/drop", body, reason=f"Operator {number}") for number in range(2))
    )
    counts = [answer["changed"] for status, answer in answers if status == 200]
    assert len(counts) == 2
    assert max(counts) <= AT_ONCE
    entries = (await read(server, AUDIT))["changes"]
    dropped = [job_id for entry in entries for job_id in entry["before"]["jobs"]]
    assert len(dropped) == len(set(dropped)) == sum(counts)
    (_, last) = await call(server, "POST", f"{HELD}/drop", body, reason="The rest")
    assert (last["changed"], last["remaining"]) == (AT_ONCE + 200 - sum(counts), 0)


async def test_held_jobs_are_filtered_and_listed_in_pages_from_either_end(
    server: Server, services: Services
) -> None:
    await store_held(services, 3)
    await store_held(services, 1, message={"app_id": "other"})
    rows = await held(server)
    assert {row["error_type"] for row in rows} == {"unknown"}
    ids = [row["job_id"] for row in rows]
    assert [row["job_id"] for row in await held(server, "?app=other")] == ids[:1]
    assert await held(server, "?error=timeout") == []
    assert len(await held(server, "?error=unknown&job=letter&group=letter.unknown")) == 4
    first = await read(server, f"{HELD}?size=3&sort=created")
    assert [row["job_id"] for row in first["jobs"]] == ids[:0:-1]
    last = await read(server, f"{HELD}?size=3&sort=created&before={first['next']}")
    assert ([row["job_id"] for row in last["jobs"]], "next" in last) == (ids[:1], False)
    status, answer = await call(server, "GET", f"{HELD}?job=nope&app=none")
    assert (status, answer["error"]["message"]) == (404, "item_not_found: job nope does not exist")


async def test_a_held_refund_names_its_order_and_the_user(server: Server, services: Services) -> None:
    uid, _ = await server.login()
    async with services.database.connection() as conn:
        await conn.execute(
            "insert into wallet_orders (row_id, app_id, uid, config, bp_product_id, product, amount, currency,"
            " return_url, cancel_url, order_id, status, created_at)"
            " values ('an-order', 'default', $1, 'default', 'coins', '{}', 199, 'usd', '', '', 'ORDER1',"
            " 'COMPLETED', now())",
            uid,
        )
    await store_held(services, 1, task="refund_order", message={"app_id": "default", "row_id": "an-order"})
    [row] = await held(server)
    assert (row["user_id"], row["order_id"]) == (uid, "an-order")


class Chime(Job):
    task: ClassVar[str] = "chime"
    timestamp: int = 0


async def test_schedules_have_their_last_and_next_time(server: Server, services: Services) -> None:
    async def chime(_: Services, __: Chime) -> None:
        pass

    async def has_run() -> bool:
        found = await read(server, "/admin/api/jobs/schedules")
        return any(row["job"] == "chime" and "last_at" in row for row in found["schedules"])

    jobs = [JobRow(Chime, chime, schedule="* * * * * *")]
    async with background(run_jobs(services, jobs=jobs, poll_s=0.05)):
        await until(has_run)
        found = await read(server, "/admin/api/jobs/schedules")
    [row] = found["schedules"]
    assert (found["workers"], row["schedule"]) == (1, "* * * * * *")
    assert row["last_at"] < row["next_at"]
