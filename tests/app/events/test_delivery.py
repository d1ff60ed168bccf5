"""Events are delivered to sinks at least once, whatever happens to the sink and the worker."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from standardwebhooks import Webhook
from structlog.testing import capture_logs

from app.work.event_delivery import RETRY_DELAYS_S
from app.work.retention import remove_expired
from storage.configs.kinds.events import key_of
from storage.events.outbox import AccountEvent
from storage.jobs.jobs import RemoveExpired
from streams.wire.codec import loads
from tests.app.events.sinks import OK, SECRET, Sinks
from tests.app.operators import Operator
from tests.vendors.http.upstream import hold, plain
from tests.waiting import until
from vendors.sinks.webhook import signature


async def report(sinks: Sinks, uid: str = "u1", change: Any = "sign_up") -> None:
    services = sinks.server.services
    async with services.database.transaction() as conn:
        event = AccountEvent(user_id=uid, change=change)
        await services.sinks.report(conn, "default", event, now=services.clock.now("default"))


async def reset(request: web.Request) -> web.StreamResponse:
    """Close the connection before the response."""
    assert request.transport is not None, "it is open"
    request.transport.abort()
    return await hold(request)


async def test_an_event_is_posted_with_a_signature_of_standard_webhooks(sinks: Sinks) -> None:
    await sinks.add()
    uid, _ = await sinks.server.login()
    async with sinks.delivering():
        [body] = await sinks.got(1)
        await sinks.has_rows()
    assert body.keys() == {"event", "id", "app_id", "time", "data"}
    assert (body["event"], body["app_id"]) == ("account", "default")
    assert body["time"].endswith("Z")
    assert body["data"] == {"user_id": uid, "change": "sign_up", "platform": "device"}
    assert sinks.webhook.seen[0].headers["Content-Type"] == "application/json"


@given(id_=st.text("0123456789abcdef", min_size=1, max_size=40), text=st.text(), t=st.integers(0, 10**11))
def test_the_signature_covers_id_time_and_body(id_: str, text: str, t: int) -> None:
    body = text.encode("utf-8", "replace")
    made = signature(key_of(SecretStr(SECRET)), id_, body, t=t)
    assert made == Webhook(SECRET).sign(id_, datetime.fromtimestamp(t, UTC), body.decode())


async def test_an_event_that_is_rolled_back_is_not_reported(sinks: Sinks) -> None:
    await sinks.add()
    services = sinks.server.services
    event = AccountEvent(user_id="u1", change="sign_up")
    try:
        async with services.database.transaction() as conn:
            await services.sinks.report(conn, "default", event, now=services.clock.now("default"))
            raise RuntimeError
    except RuntimeError:
        pass
    assert await sinks.rows() == []


async def test_a_sink_gets_only_what_it_wants_and_only_from_then_on(sinks: Sinks) -> None:
    await sinks.server.login()
    await sinks.add("assets", events=["asset"])
    await sinks.server.login()
    assert await sinks.rows() == []
    await sinks.add("crm")
    await sinks.add("audit", events=["account"])
    uid, _ = await sinks.server.login()
    assert await sinks.rows("sink, uid") == [("audit", uid), ("crm", uid)]
    async with sinks.delivering():
        [first] = await sinks.got(1, "crm")
        assert await sinks.got(1, "audit") == [first]
        await sinks.has_rows()
    assert sinks.calls("assets") == []


async def test_an_event_is_sent_again_with_its_id_until_the_sink_accepts_it(sinks: Sinks) -> None:
    await sinks.add(timeout_s=1)
    await report(sinks)
    elsewhere = plain(302, Location=f"{sinks.webhook.url}/elsewhere")
    faults = [
        (plain(400), "answered 400"),
        (plain(500), "answered 500"),
        (elsewhere, "answered 302"),
        (reset, "connection"),
        (hold, "no result within 1 s"),
    ]
    sinks.answer(faults[0][0])
    async with sinks.delivering():
        for attempts, (answer, problem) in enumerate(faults, 1):
            sinks.webhook.respond_with(answer)
            await sinks.make_due()
            await sinks.has_rows((attempts,), columns="attempts")
            [(error,)] = await sinks.rows("error")
            assert problem in error
            [(wait_s,)] = await sinks.rows("extract(epoch from due_at - now())::float8")
            assert wait_s <= RETRY_DELAYS_S[attempts - 1] < wait_s + 60
        sinks.webhook.respond_with(OK)
        await sinks.make_due()
        await sinks.has_rows()
    assert len({body["id"] for body in sinks.calls()}) == 1
    assert {call.path for call in sinks.webhook.seen} == {"/crm"}
    assert len({call.body for call in sinks.webhook.seen}) == 1


async def test_a_sink_that_is_overloaded_says_when_to_come_back(sinks: Sinks) -> None:
    await sinks.add()
    await report(sinks)
    sinks.answer(plain(429, Retry_After="1000"))
    async with sinks.delivering():
        await sinks.has_rows((1,), columns="attempts")
    [(wait_s,)] = await sinks.rows("extract(epoch from due_at - now())::float8")
    assert 990 < wait_s <= 1000


async def test_an_event_that_is_never_accepted_is_dead_until_an_operator_retries_it(sinks: Sinks) -> None:
    operator = Operator(sinks.server)
    await sinks.add()
    await report(sinks)
    sinks.answer(plain(400))
    async with sinks.delivering():
        for attempt in range(1, len(RETRY_DELAYS_S) + 2):
            await sinks.has_rows((attempt,), columns="attempts")
            await sinks.make_due()
        [(event_id, dead)] = await sinks.rows("event_id, dead_at is not null")
        assert dead
        await report(sinks, "u2")
        await sinks.has_rows((9,), (1,), columns="attempts")

        listed = (await operator("GET", "events?app=default&sink=crm&status=dead")).body
        [row] = listed["events"]
        assert (row["event_id"], row["status"], row["attempts"], row["user_id"]) == (event_id, "dead", 9, "u1")
        assert (row["error"], row["event"]) == ("events answered 400", "account")
        first = (await operator("GET", "events?size=1")).body
        assert [event["user_id"] for event in first["events"]] == ["u2"]
        before = (await operator("GET", f"events?size=1&before={first['next']}")).body
        assert [event["user_id"] for event in before["events"]] == ["u1"]

        assert (await operator("POST", "events/default/nope/retry", {})).error[0] == 404
        assert (await operator("POST", "events/default/crm/retry", {"event_id": "nope"})).error[0] == 404
        sinks.answer(OK)
        assert (await operator("POST", "events/default/crm/retry", {"event_id": event_id})).body == {"retried": 1}
        assert [body["id"] for body in await sinks.got(1)] == [event_id]
        assert (await operator("POST", "events/default/crm/retry", {})).body == {"retried": 1}
        await sinks.has_rows()
    audited = (await operator("GET", "audit?kind=events&action=events.retry")).body["changes"]
    assert [entry["after"]["events"] for entry in audited] == [1, 1]


async def test_a_sink_that_hangs_neither_delays_requests_nor_other_sinks(sinks: Sinks) -> None:
    await sinks.add("slow", timeout_s=30)
    await sinks.add("crm")
    answers = {"/slow": hold, "/crm": OK}

    async def by_path(request: Any) -> Any:
        return await answers[request.path](request)

    sinks.answer(by_path)
    async with sinks.delivering():
        await sinks.server.login()
        await until(lambda: len(sinks.webhook.seen) == 2)
        await sinks.server.login()
        await sinks.got(2, "crm")
        assert len(sinks.calls("slow")) == 1


async def test_a_sink_that_fails_is_left_alone_for_a_while_which_costs_no_attempts(sinks: Sinks) -> None:
    breaker = {"min_calls": 3, "window_s": 600, "open_s": 3600, "failure_ratio": 1}
    await sinks.add(breaker=breaker, concurrency=1)
    for number in range(8):
        await report(sinks, f"u{number}")
    sinks.answer(plain(403))
    async with sinks.delivering():
        await sinks.has_rows(*[(1,)] * 3, *[(0,)] * 5, columns="attempts")
        await sinks.execute("update reported_events set due_at = now() - interval '1 hour'")
        await sinks.add("other")
        await report(sinks)
        await sinks.got(1, "other")
        assert len(sinks.calls()) == 3
        await sinks.add(breaker={**breaker, "open_s": 0.5}, concurrency=1)
        await until(lambda: len(sinks.calls()) > 3)
        sinks.answer(OK)
        await until(lambda: len(sinks.calls()) >= 5)
        await sinks.make_due()
        await until(sinks_are_empty(sinks, "crm"))


def sinks_are_empty(sinks: Sinks, name: str) -> Callable[[], Awaitable[bool]]:
    async def empty() -> bool:
        await sinks.make_due()
        return await sinks.rows(where=f"sink = '{name}'") == []

    return empty


async def test_events_of_a_user_arrive_in_order_while_those_of_others_arrive_at_once(sinks: Sinks) -> None:
    await sinks.add(timeout_s=30)
    order = ["sign_up", "linked", "unlinked", "frozen", "recovered", "deactivated"] * 5
    for change in order:
        for uid in ("u1", "u2", "u3"):
            await report(sinks, uid, change)
    together = asyncio.Barrier(3)

    async def wait_for_others(request: Any) -> Any:
        await together.wait()
        return await OK(request)

    sinks.answer(wait_for_others)
    async with sinks.delivering(), sinks.delivering():
        calls = await sinks.got(90)
        await sinks.has_rows()
    for uid in ("u1", "u2", "u3"):
        assert [body["data"]["change"] for body in calls if body["data"]["user_id"] == uid] == order


async def test_more_events_than_a_batch_are_delivered_once_by_several_workers(sinks: Sinks) -> None:
    await sinks.add(concurrency=50)
    for number in range(30):
        services = sinks.server.services
        async with services.database.transaction() as conn:
            for part in range(10):
                event = AccountEvent(user_id=f"u{number}-{part}", change="sign_up")
                await services.sinks.report(conn, "default", event, now=services.clock.now("default"))
    async with sinks.delivering(), sinks.delivering(), sinks.delivering():
        calls = await sinks.got(300)
        await sinks.has_rows()
    assert len({body["id"] for body in calls}) == 300


async def test_events_of_a_worker_that_is_stopped_are_due_at_once(sinks: Sinks) -> None:
    await sinks.add(timeout_s=30)
    await report(sinks)
    sinks.answer(hold, OK)
    async with sinks.delivering():
        await sinks.got(1)
        [(claimed,)] = await sinks.rows("claim_ends_at is not null")
        assert claimed
    [(claimed, attempts)] = await sinks.rows("claim_ends_at is not null, attempts")
    assert (claimed, attempts) == (False, 0)
    async with sinks.delivering():
        first, second = await sinks.got(2)
    assert first == second


async def test_events_that_another_worker_has_claimed_are_left_to_it_until_it_counts_as_dead(sinks: Sinks) -> None:
    await sinks.add()
    await report(sinks)
    await report(sinks, "u2")
    await sinks.execute("update reported_events set claim_ends_at = now() + interval '1 hour' where uid = 'u1'")
    async with sinks.delivering():
        await sinks.add("other")
        await report(sinks, "u3")
        await sinks.got(1, "other")
        assert sinks.calls() == []
        await sinks.execute("update reported_events set claim_ends_at = now()")
        assert {body["data"]["user_id"] for body in await sinks.got(3)} == {"u1", "u2", "u3"}


async def test_events_of_deleted_sinks_and_those_that_were_never_accepted_are_deleted(sinks: Sinks) -> None:
    await sinks.add()
    await sinks.add("gone")
    await report(sinks)
    await report(sinks, "u2")
    await sinks.remove("gone")
    await sinks.execute("update reported_events set dead_at = now() - interval '29 days' where uid = 'u2'")
    await remove_expired(sinks.server.services, RemoveExpired())
    assert await sinks.rows("sink, uid") == [("crm", "u1"), ("crm", "u2")]
    await sinks.execute("update reported_events set dead_at = now() - interval '31 days' where uid = 'u2'")
    await remove_expired(sinks.server.services, RemoveExpired())
    assert await sinks.rows("sink, uid") == [("crm", "u1")]
    await sinks.execute("update reported_events set due_at = now() - interval '31 days'")
    await remove_expired(sinks.server.services, RemoveExpired())
    assert await sinks.rows() == []


async def test_a_redis_stream_gets_events_in_their_order_and_keeps_the_newest(sinks: Sinks) -> None:
    await sinks.add("queue", stream="accounts", max_len=100)
    for number in range(250):
        await report(sinks, f"u{number}")
    valkey = sinks.server.services.valkey
    key = valkey.key("events:default", "accounts")
    async with sinks.delivering():
        await sinks.has_rows()
    entries = [entry for _, entry in await valkey.client.xrange(key)]
    await valkey.client.delete(key)
    assert 100 <= len(entries) < 250
    assert entries[-1].keys() == {b"event", b"id", b"app_id", b"time", b"data"}
    assert loads(entries[-1][b"data"]) == {"user_id": "u249", "change": "sign_up", "platform": None}
    assert [entry[b"id"] for entry in entries] == sorted(entry[b"id"] for entry in entries)


async def test_a_stream_that_cannot_be_written_gets_its_events_later(sinks: Sinks) -> None:
    await sinks.add("queue", stream="taken")
    valkey = sinks.server.services.valkey
    key = valkey.key("events:default", "taken")
    await valkey.client.set(key, "no stream")
    await report(sinks)
    async with sinks.delivering():
        await sinks.has_rows((1, "Valkey refused a command"), columns="attempts, error")
        await valkey.client.delete(key)
        await sinks.make_due()
        await sinks.has_rows()
    assert await valkey.client.xlen(key) == 1
    await valkey.client.delete(key)


async def test_a_worker_looks_again_once_the_database_is_available(sinks: Sinks) -> None:
    await sinks.add()
    await report(sinks)
    await sinks.execute("alter table reported_events rename to away")
    with capture_logs() as lines:
        async with sinks.delivering():
            await until(lambda: any(line["event"] == "events.unavailable" for line in lines))
            await sinks.execute("alter table away rename to reported_events")
            await sinks.got(1)
