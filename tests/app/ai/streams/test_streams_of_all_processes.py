"""Operators see, open and cancel the streams of all processes through any of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from storage.operators import operators
from storage.operators.audit import COMMAND
from storage.operators.operators import Role
from storage.processes.heartbeats import Heartbeat
from streams.tasks import background
from streams.wire.codec import loads
from streams.wire.ids import new_id
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.two_servers import at, knows
from tests.app.operator_calls import call
from tests.peers.sse_client import events
from tests.peers.vendor import Vendor
from tests.running.servers import ADMIN_TOKEN, Server
from tests.waiting import until

STREAMS = "/admin/api/streams"


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def read(server: Server, path: str, **options: Any) -> Any:
    status, answer = await call(server, "GET", path, **options)
    assert status == 200, answer
    return answer


@asynccontextmanager
async def answering(talk: Talk, strategy: str) -> AsyncIterator[str]:
    """Run a stream that has sent its first words. Yield its id."""
    async with talk.say("Hello", strategy, conversation_id="") as response:
        said = ""
        seen = events(response)
        while not said.endswith("upon"):
            event = await anext(seen)
            said += event.content["text"] if event.name == "assistant_output_chunk" else ""
        yield response.headers["X-Service-Stream-Id"]


async def watched(server: Server, path: str, seen: list[dict[str, Any]], token: str = ADMIN_TOKEN) -> None:
    """Add the events of a stream to `seen` until the response ends."""
    headers = {"Authorization": f"Bearer {token}"}
    async with server.http.get(f"{server.url}{path}", headers=headers) as response:
        assert response.status == 200, await response.text()
        async for line in response.content:
            seen.extend([loads(line.removeprefix(b"data: "))] if line.startswith(b"data: ") else [])


def said(seen: list[dict[str, Any]]) -> str:
    return "".join(event["content"]["text"] for event in seen if event["name"] == "assistant_output_chunk")


async def test_streams_of_all_processes_are_listed_chosen_and_paged_through_any_of_them(
    server: Server, other: Server, talk: Talk, strategy: Any, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon")
    await strategy("also", "slow:Once upon")
    await knows(other, "also")
    stranger = Talk(other, *(await server.login()))
    own, others = server.services.heartbeat.process, other.services.heartbeat.process
    async with (
        answering(talk, "slow") as first,
        answering(stranger, "also") as second,
        answering(at(other, talk), "slow") as third,
    ):
        for asked in (server, other):
            answer = await read(asked, STREAMS)
            assert [(row["stream_id"], row["process"]) for row in answer["streams"]] == [
                (first, own),
                (second, others),
                (third, others),
            ]
            assert (answer["total"], answer["processes"], answer["silent"]) == (3, sorted([own, others]), [])
            assert answer["complete"] is True
        row = (await read(server, f"{STREAMS}?strategy=also"))["streams"]
        assert [(one["stream_id"], one["user_id"], one["vendor"], one["model"]) for one in row] == [
            (second, stranger.uid, "vendor_b_llm", "slow:Once upon")
        ]
        for query, expected in {
            f"user_id={talk.uid}": [first, third],
            f"process={others}": [second, third],
            f"process={own}&kind=conversation&app=default": [first],
            "kind=tts": [],
            "sort=-created": [third, second, first],
        }.items():
            answer = await read(server, f"{STREAMS}?{query}")
            assert [one["stream_id"] for one in answer["streams"]] == expected, query
            assert answer["total"] == len(expected)
        for order, expected in {"created": [first, second, third], "-created": [third, second, first]}.items():
            page, paged = await read(server, f"{STREAMS}?sort={order}&size=2"), []
            paged += page["streams"]
            page = await read(server, f"{STREAMS}?sort={order}&size=2&before={page['next']}")
            assert "next" not in page
            assert page["total"] == 3
            assert [one["stream_id"] for one in paged + page["streams"]] == expected
        vendor.release.set()
    for each in (server, other):
        await each.services.supervisor.idle()


async def test_a_process_that_does_not_answer_is_named_and_the_others_are_listed(
    server: Server, other: Server, talk: Talk, strategy: Any, vendor: Vendor
) -> None:
    services = server.services
    ended = Heartbeat(services.valkey, services.database, new_id(), dict)
    await ended.beat()  # It counts as alive for 30 s, and nobody listens to its channel.
    await strategy("slow", "slow:Once upon")
    await knows(other, "slow")
    async with answering(at(other, talk), "slow") as stream_id:
        answer = await read(server, STREAMS)
        assert [row["stream_id"] for row in answer["streams"]] == [stream_id]
        assert (answer["silent"], answer["complete"]) == ([ended.process], False)
        assert (await read(server, f"{STREAMS}/default/{stream_id}"))["stream"]["process"] != ended.process
        status, answer = await call(server, "GET", f"{STREAMS}/default/{new_id()}")
        assert (status, answer["error"]["message"]) == (
            503,
            "backend unavailable: a process that may have the stream did not answer",
        )
        vendor.release.set()
    await other.services.supervisor.idle()
    await ended.stop()
    answer = await read(server, f"{STREAMS}?process={ended.process}")
    assert (answer["streams"], answer["silent"]) == ([], [ended.process])
    status, answer = await call(server, "GET", f"{STREAMS}/default/{new_id()}")
    assert (status, answer["error"]["error_type"]) == (404, "item_not_found")


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_running_stream_is_opened_with_its_attempts_and_its_events_to_the_end(
    server: Server, other: Server, talk: Talk, strategy: Any, vendor: Vendor, *, elsewhere: bool
) -> None:
    await strategy("refused", "refuse:500")
    await strategy("slow", "slow:Once upon")
    asked = other if elsewhere else server
    async with talk.say("Hello", "refused", "slow", conversation_id="") as response:
        client = events(response)
        stream_id = response.headers["X-Service-Stream-Id"]
        while (await anext(client)).name != "assistant_output_chunk":
            pass
        path = f"{STREAMS}/default/{stream_id}"
        found = await read(asked, path)
        assert (found["ended"], found["stream"]["strategy"], found["stream"]["readers"]) == (False, "slow", 1)
        failed, runs = found["attempts"]
        assert (failed["strategy"], failed["outcome"], runs["strategy"], runs["outcome"]) == (
            "refused",
            "failed",
            "slow",
            "running",
        )
        assert failed["message"]
        assert (runs["model"], runs["vendor"]) == ("slow:Once upon", "vendor_b_llm")
        assert failed["started_ms"] + failed["elapsed_ms"] <= runs["started_ms"] + 1
        assert found["latency_ms"]["first_text"] >= found["latency_ms"]["input"]
        seen: list[dict[str, Any]] = []
        async with background(watched(asked, f"{path}/events", seen)) as watching:
            await until(lambda: said(seen).endswith("upon"))
            assert (await read(asked, path))["stream"]["readers"] == 1, "operators do not count as readers"
            vendor.release.set()
            await watching
        async for _ in client:
            pass
    assert [event["id"] for event in seen] == list(range(1, len(seen) + 1))
    assert (seen[0]["name"], seen[-1]["name"], said(seen)) == ("start", "end", "Once upon")
    assert all(event["bytes"] > 20 and event["at_ms"] for event in seen)
    rest: list[dict[str, Any]] = []
    await watched(asked, f"{path}/events?after={len(seen) - 1}", rest)
    assert rest == seen[-1:]
    found = await read(asked, path)
    assert (found["ended"], found["latency_ms"]) == (True, seen[-1]["content"]["latency_ms"])
    stored = (await read(asked, f"{path}/attempts"))["attempts"]
    assert [(one["strategy"], one["model"], one["outcome"]) for one in stored] == [
        ("refused", "refuse:500", "failed"),
        ("slow", "slow:Once upon", "won"),
    ]
    assert (stored[1]["started_ms"], stored[1]["elapsed_ms"] > 0) == (runs["started_ms"], True)


async def test_only_those_who_may_read_texts_see_what_is_said(
    server: Server, other: Server, talk: Talk, strategy: Any
) -> None:
    await strategy("quick", "say:A secret")
    async with talk.say("Hello", "quick", conversation_id="") as response:
        stream_id = response.headers["X-Service-Stream-Id"]
        await response.read()
    for role in (Role.VIEWER, Role.EDITOR):
        async with server.services.database.transaction() as conn:
            _, token = await operators.add(conn, f"the-{role}", role=role, expires_at=None, origin=COMMAND)
        for asked in (server, other):
            seen: list[dict[str, Any]] = []
            await watched(asked, f"{STREAMS}/default/{stream_id}/events", seen, token)
            assert seen[-1]["name"] == "end"
            assert {name for event in seen for name in event} == {"id", "name", "at_ms", "bytes"}


async def test_a_watched_stream_ends_without_readers_all_the_same(
    server: Server, other: Server, talk: Talk, strategy: Any
) -> None:
    limits = {"resume_grace_s": 0.3}
    await server.services.configs.put("default", "limits", "default", limits, author="test", origin=COMMAND)
    await strategy("slow", "slow:Once upon")
    response = await talk.say("Hello", "slow", conversation_id="")
    seen: list[dict[str, Any]] = []
    path = f"{STREAMS}/default/{response.headers['X-Service-Stream-Id']}/events"
    async with background(watched(other, path, seen)) as watching:
        await until(lambda: said(seen).endswith("upon"))
        response.close()
        await watching
    assert seen[-1]["name"] == "error"
    assert seen[-1]["content"]["error"]["error_type"] == "backend_unavailable"


async def test_a_stream_of_another_process_is_cancelled_with_a_reason(
    server: Server, other: Server, talk: Talk, strategy: Any, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon")
    async with answering(talk, "slow") as stream_id:
        path = f"/admin/api/users/default/{talk.uid}/streams/{stream_id}/cancel"
        assert (await call(other, "POST", path, {}, reason=""))[0] == 400
        assert (await call(other, "POST", path, {}, reason="It loops"))[0] == 200
        assert (await read(other, f"{STREAMS}/default/{stream_id}"))["ended"] is True
        assert (await call(other, "POST", path, {}, reason="It still loops"))[0] == 404
        vendor.release.set()
    changes = (await read(other, "/admin/api/audit?action=stream.cancel"))["changes"]
    assert changes[0]["reason"] == "It loops"


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        (f"{STREAMS}/none/{'0' * 32}", 404, "item_not_found: app none does not exist"),
        (f"{STREAMS}/default/x", 404, "item_not_found: stream x does not run, and can no longer be read"),
        (f"{STREAMS}?before=x", 400, "invalid_parameter: before must be `next` of a page of this list"),
        (
            f"{STREAMS}/default/{'0' * 32}/events?after=-1",
            400,
            "invalid_parameter: after must be at least 0",
        ),
    ],
)
async def test_wrong_paths_and_queries_are_refused(server: Server, path: str, status: int, message: str) -> None:
    answered, answer = await call(server, "GET", path)
    assert (answered, answer["error"]["message"]) == (status, message)
