"""Webhooks are verified, stored and answered, and a job works on them later. Operators read and replay them."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from app.admin.webhooks import admin_webhook_routes
from app.http.openapi.document import openapi
from app.http.rows.webhooks import Verified, webhook_row
from app.services import Services
from app.work.jobs import JOBS, JobRow
from app.work.webhooks import worker_of
from app.work.worker import run_jobs
from storage.jobs.inbox import Webhook
from storage.jobs.jobs import RemoveExpired, WorkWebhook, enqueue
from storage.operators.audit import COMMAND
from streams.tasks import background
from streams.wire.errors import Unavailable
from tests.app.platform import deliver, sign, source
from tests.running.servers import ADMIN_TOKEN, Server, running_server
from tests.waiting import until

STORED = (200, None)


class WebhookRecorder:
    """Works on webhooks: records their bodies, and raises an error in the next `failures` calls."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.failures = 0
        self.error: Exception = Unavailable("the platform does not answer")
        self.hangs = False

    async def work(self, services: Services, webhook: Webhook) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.failures:
            self.failures -= 1
            raise self.error
        self.bodies.append(webhook.body)


@pytest.fixture
def services(shared_server: Server) -> Services:
    return shared_server.services


@pytest.fixture
def recorder() -> WebhookRecorder:
    return WebhookRecorder()


@pytest.fixture
async def small(services: Services, listener: socket.socket, recorder: WebhookRecorder) -> AsyncIterator[Server]:
    sources = [source(recorder.work), source(recorder.work, "ship")]
    rows = [*map(webhook_row, sources), *admin_webhook_routes([webhooks.name for webhooks in sources])]
    async with running_server(services, listener, rows) as running:
        yield replace(running, url="http://{}:{}".format(*listener.getsockname()))


@asynccontextmanager
async def working(services: Services, recorder: WebhookRecorder) -> AsyncIterator[None]:
    jobs = [row for row in JOBS if row.message is not WorkWebhook]
    jobs.append(JobRow(WorkWebhook, worker_of([source(recorder.work), source(recorder.work, "ship")])))
    async with background(run_jobs(services, jobs=jobs, scheduled=False, poll_s=0.05)):
        yield


async def admin(small: Server, path: str = "", *, method: str = "GET", key: str | None = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "X-Parley-Reason": "a test"}
    headers |= {"Idempotency-Key": key} if key else {}
    url = f"{small.url}/admin/api/webhooks{path}"
    async with small.http.request(method, url, headers=headers) as response:
        return response.status, await response.json()


async def listed(small: Server, query: str = "") -> list[dict[str, Any]]:
    status, answer = await admin(small, query)
    assert status == 200, answer
    found: list[dict[str, Any]] = answer["webhooks"]
    return found


async def all_are(small: Server, status: str) -> bool:
    return {row["status"] for row in await listed(small)} == {status}


async def no_job_left(services: Services) -> bool:
    async with services.database.connection() as conn:
        return not await conn.fetchval("select 1 from procrastinate_jobs")


async def has_job(services: Services, status: str) -> bool:
    async with services.database.connection() as conn:
        found: bool = await conn.fetchval(
            "select exists (select from procrastinate_jobs where status::text = $1)", status
        )
        return found


async def test_webhook_is_stored_answered_and_worked_on_by_a_job(
    small: Server, services: Services, recorder: WebhookRecorder
) -> None:
    raw = b'{"id" : "evt_1",  "kind": "paid"}'
    assert await deliver(small.http, small.url, raw, X_Delivery="d1", X_Other="2") == STORED
    [row] = await listed(small)
    assert (row["app"], row["source"], row["config"], row["status"]) == ("default", "pay", "main", "received")
    assert (row["event_id"], row["delivery_id"]) == ("evt_1", "d1")
    assert recorder.bodies == []
    async with working(services, recorder):
        await until(lambda: all_are(small, "done"))
    assert recorder.bodies == [raw]
    status, found = await admin(small, f"/{row['webhook_id']}")
    assert (status, found["body"], found["status"]) == (200, raw.decode(), "done")
    assert found["headers"] == {"X-Delivery": "d1"}
    assert found["worked_at"] > found["received_at"]


async def test_header_that_is_not_utf8_is_stored_without_its_other_bytes(small: Server) -> None:
    head = f"POST /bp/webhook/pay/default/main HTTP/1.1\r\nHost: parley\r\nX-Signature: {sign(b'')}\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(small.url).port)
    with closing(writer):
        writer.write(head.encode() + b"X-Trace: caf\xe9\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
    [row] = await listed(small)
    _, found = await admin(small, f"/{row['webhook_id']}")
    assert (found["headers"], found["body"]) == ({"X-Trace": "caf\ufffd"}, "")


async def test_a_repeated_webhook_is_acknowledged_but_not_processed_again(
    small: Server, services: Services, recorder: WebhookRecorder
) -> None:
    async def send(event_id: str, delivery: str, *, path: str = "pay/default/main") -> None:
        event = {"id": event_id, "n": uuid4().hex}
        assert await deliver(small.http, small.url, event, path=path, X_Delivery=delivery) == STORED

    await send("evt_1", "d1")
    await send("evt_1", "d2")  # The platform delivers the event again.
    await send("evt_2", "d1")  # Somebody sends the delivery again with another content.
    await send("evt_1", "d1", path="ship/default/main")
    await asyncio.gather(*(send("evt_3", f"d3-{number}") for number in range(8)))
    assert sorted((row["source"], row["event_id"]) for row in await listed(small)) == [
        ("pay", "evt_1"),
        ("pay", "evt_3"),
        ("ship", "evt_1"),
    ]
    async with working(services, recorder):
        await until(lambda: all_are(small, "done"))
    assert len(recorder.bodies) == 3


async def test_webhooks_without_an_id_are_all_stored_as_they_are(
    small: Server, services: Services, recorder: WebhookRecorder
) -> None:
    for _ in range(2):
        assert await deliver(small.http, small.url, b"\xff\x00") == STORED
    webhook_id = (await listed(small))[0]["webhook_id"]
    _, found = await admin(small, f"/{webhook_id}")
    assert ("body" not in found, found["body_base64"]) == (True, "/wA=")
    async with working(services, recorder):
        await until(lambda: all_are(small, "done"))
    assert recorder.bodies == [b"\xff\x00"] * 2


async def test_unverified_webhooks_are_not_stored(small: Server) -> None:
    unsigned = await deliver(small.http, small.url, {"id": "1"}, X_Signature="0" * 64)
    assert unsigned == (400, "invalid_parameter: the signature is missing or wrong")
    no_config = await deliver(small.http, small.url, {"id": "1"}, path="pay/default/other")
    assert no_config == (404, "item_not_found: config other of this platform does not exist")
    no_app = await deliver(small.http, small.url, {"id": "1"}, path="pay/other/main")
    assert no_app == (400, "app_not_found: app other does not exist")
    assert (await deliver(small.http, small.url, {"id": "1"}, path="gift/default/main"))[0] == 404
    assert (await deliver(small.http, small.url, {"id": "x" * 256}))[0] == 400
    assert (await deliver(small.http, small.url, {"id": "a\0b"}))[0] == 400
    too_large = await deliver(small.http, small.url, b"x" * (256 * 1024 + 1))
    assert too_large == (413, "invalid_parameter: body exceeds 262144 bytes")
    assert await listed(small) == []
    assert await deliver(small.http, small.url, {"id": "1", "data": "x" * 262_000}) == STORED


async def test_verification_that_takes_too_long_is_refused_as_retryable(
    services: Services, listener: socket.socket, recorder: WebhookRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: object) -> Verified:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr("app.http.rows.webhooks._VERIFY_S", 0.3)
    async with running_server(
        services, listener, [webhook_row(replace(source(recorder.work), verify=hang))]
    ) as small:
        url = "http://{}:{}".format(*listener.getsockname())
        status, message = await deliver(small.http, url, {"id": "1"})
    assert status == 503
    assert message is not None


async def test_work_that_takes_too_long_is_stored_as_a_failure(
    small: Server, services: Services, recorder: WebhookRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.work.webhooks._WORK_S", 0.3)
    recorder.hangs = True
    await deliver(small.http, small.url, {"id": "1"})
    async with working(services, recorder):
        await until(lambda: all_are(small, "failed"))
    assert [row["error"] for row in await listed(small)] == ["unfinished after 0.3 s"]


async def test_stored_error_is_bounded_and_has_no_nul(
    small: Server, services: Services, recorder: WebhookRecorder
) -> None:
    recorder.failures, recorder.error = 1, Unavailable("a\0b" + "x" * 5_000)
    await deliver(small.http, small.url, {"id": "1"})
    async with working(services, recorder):
        await until(lambda: all_are(small, "failed"))
    [row] = await listed(small)
    assert row["error"].startswith("backend unavailable: a bxx")
    assert len(row["error"]) == 1_000


async def test_failed_work_is_retried_and_a_replay_repeats_it_immediately(
    small: Server, services: Services, recorder: WebhookRecorder
) -> None:
    recorder.failures = 1
    await deliver(small.http, small.url, {"id": "1"})
    async with working(services, recorder):
        await until(lambda: all_are(small, "failed"))
        [row] = await listed(small)
        assert row["error"] == "backend unavailable: the platform does not answer"
        await until(lambda: has_job(services, "todo"))  # The next attempt is due in ten seconds.
        path = f"/{row['webhook_id']}/replay"
        for _ in range(2):
            assert await admin(small, path, method="POST", key="once") == (200, {})
        await until(lambda: all_are(small, "done"))
        assert len(recorder.bodies) == 1
        assert "error" not in (await listed(small))[0]
        assert await admin(small, path, method="POST") == (200, {})
        await until(lambda: len(recorder.bodies) == 2)


async def test_replay_of_a_webhook_that_waits_for_its_retry_makes_that_job_due_now(
    small: Server, services: Services, recorder: WebhookRecorder
) -> None:
    recorder.failures = 1
    await deliver(small.http, small.url, {"id": "1"})
    async with working(services, recorder):
        await until(lambda: all_are(small, "failed"))
        await until(lambda: has_job(services, "todo"))  # The next attempt is due in ten seconds.
    [row] = await listed(small)
    assert await admin(small, f"/{row['webhook_id']}/replay", method="POST") == (200, {})
    async with services.database.connection() as conn:
        [job] = await conn.fetch("select attempts, scheduled_at from procrastinate_jobs")
    assert (job["attempts"], job["scheduled_at"]) == (0, None)
    async with working(services, recorder):
        await until(lambda: all_are(small, "done"))
        await until(lambda: no_job_left(services))


async def test_replays_during_an_attempt_leave_one_job_that_waits(small: Server, services: Services) -> None:
    await deliver(small.http, small.url, {"id": "1"})
    [row] = await listed(small)
    async with services.database.connection() as conn:
        await conn.execute("update procrastinate_jobs set status = 'doing'")
        for _ in range(2):
            assert await admin(small, f"/{row['webhook_id']}/replay", method="POST") == (200, {})
        # A further attempt of the first job would be dropped, because a job with its key waits.
        jobs = await conn.fetch("select status::text, queueing_lock from procrastinate_jobs order by id")
    assert [tuple(job) for job in jobs] == [
        (status, f"webhook:{row['webhook_id']}") for status in ("doing", "todo")
    ]


async def test_replay_of_a_held_webhook_leaves_no_held_job(
    small: Server, services: Services, recorder: WebhookRecorder
) -> None:
    recorder.failures = 1
    await deliver(small.http, small.url, {"id": "1"})
    async with services.database.connection() as conn:
        await conn.execute("update procrastinate_jobs set attempts = 11")
    async with working(services, recorder):
        await until(lambda: all_are(small, "failed"))
        await until(lambda: has_job(services, "failed"))
        [row] = await listed(small)
        assert await admin(small, f"/{row['webhook_id']}/replay", method="POST") == (200, {})
        await until(lambda: all_are(small, "done"))
        await until(lambda: no_job_left(services))


async def test_list_has_pages_and_filters(small: Server) -> None:
    for number in range(3):
        await deliver(small.http, small.url, {"id": str(number)})
    await deliver(small.http, small.url, {"id": "3"}, path="ship/default/main")
    _, first = await admin(small, "?size=3")
    assert [row["event_id"] for row in first["webhooks"]] == ["3", "2", "1"]
    _, second = await admin(small, f"?size=3&before={first['next']}")
    assert ([row["event_id"] for row in second["webhooks"]], "next" in second) == (["0"], False)
    for query, count in (("app=default", 4), ("app=no", 0), ("source=ship", 1), ("status=done", 0)):
        assert len(await listed(small, f"?{query}")) == count, query
    for path, method, status in (
        ("?status=lost", "GET", 400),
        ("?before=1", "GET", 400),
        (f"/{uuid4().hex}", "GET", 404),
        (f"/{uuid4().hex}/replay", "POST", 404),
        ("/1", "GET", 404),
    ):
        assert (await admin(small, path, method=method))[0] == status, path


async def test_list_of_a_source_that_does_not_exist_names_those_that_do(small: Server) -> None:
    assert await listed(small, "?source=ship") == []
    status, answer = await admin(small, "?source=nope")
    assert (status, answer["error"]["error_type"]) == (400, "invalid_parameter")
    assert answer["error"]["message"] == "invalid_parameter: source must be one of pay, ship"


async def test_webhooks_are_deleted_after_their_days(
    small: Server, services: Services, recorder: WebhookRecorder
) -> None:
    async def pass_days(days: int) -> None:
        await services.clock.move("default", offset_s=days * 86_400)
        async with services.database.transaction() as conn:
            await enqueue(conn, RemoveExpired())

    await services.configs.put("default", "limits", "default", {"webhook_days": 30}, author="tests", origin=COMMAND)
    await deliver(small.http, small.url, {"id": "1"})
    async with working(services, recorder):
        await until(lambda: all_are(small, "done"))
        for days, left in ((29, 1), (31, 0)):
            await pass_days(days)
            await until(lambda: no_job_left(services))
            assert len(await listed(small)) == left
    assert await deliver(small.http, small.url, {"id": "1"}) == STORED


async def test_deliveries_are_counted_by_source_and_outcome(small: Server, services: Services) -> None:
    from prometheus_client import REGISTRY  # noqa: PLC0415

    def counts() -> dict[str, float]:
        outcomes = ("stored", "repeated", "refused")
        return {
            outcome: REGISTRY.get_sample_value("parley_webhooks_total", {"source": "pay", "outcome": outcome}) or 0
            for outcome in outcomes
        }

    before = counts()
    for event_id in ("1", "2", "1"):
        await deliver(small.http, small.url, {"id": event_id})
    await deliver(small.http, small.url, {"id": "3"}, X_Signature="")
    assert {name: count - before[name] for name, count in counts().items()} == {
        "stored": 2,
        "repeated": 1,
        "refused": 1,
    }


def test_reference_names_each_source(recorder: WebhookRecorder) -> None:
    rows = [webhook_row(source(recorder.work)), webhook_row(source(recorder.work, "ship"))]
    paths = openapi(rows, public_url="https://parley.example")["paths"]
    for name in ("pay", "ship"):
        operation = paths[f"/bp/webhook/{name}/{{app_id}}/{{config}}"]["post"]
        assert operation["operationId"] == f"webhooks_receive_{name}"
        assert operation["summary"] == "Receive an event of payments (webhook)"
        assert "The signature of the webhook is missing or wrong." in operation["responses"]["400"]["description"]
