"""Turns whose connections break: the TypeScript client resumes them, and notices what is missing."""

import random

import pytest
from structlog.testing import capture_logs
from yarl import URL

from actors.runtime.context import Owner
from streams.tasks import background
from tests.app.ai.conftest import other
from tests.browser.unreliable_proxy import UnreliableProxy
from tests.clients.typescript.conftest import Configure
from tests.clients.typescript.program import ClientError, Program
from tests.peers.vendor import Vendor
from tests.running.servers import Server
from tests.waiting import until

__all__ = ["other"]

LANGUAGE = {"languageCode": "en-US"}
WORDS = 400
ANSWER = " ".join(["word"] * WORDS)


async def test_a_turn_that_is_cut_many_times_arrives_complete(
    behind_proxy: Program, proxy: UnreliableProxy, strategy: Configure
) -> None:
    await strategy("long", f"paced:{WORDS}")
    proxy.cuts = [700, 1_500, 600, 2_000]
    turn = behind_proxy.read(options={"strategies": ["long"], "text": "Hi", **LANGUAGE})
    result = await turn.ended()
    assert proxy.cuts == []
    assert result["text"] == ANSWER
    assert result["end"]["finish_reason"] == "stop"
    ids = [turn.events.get_nowait()["id"] for _ in range(turn.events.qsize())]
    assert ids == list(range(1, len(ids) + 1))


@pytest.mark.soak
async def test_200_cuts_lose_nothing(behind_proxy: Program, proxy: UnreliableProxy, strategy: Configure) -> None:
    await strategy("long", f"paced:{WORDS}")
    places = random.Random(5)  # noqa: S311 - the same cuts in each run
    for _ in range(20):
        proxy.cuts = [places.randrange(1, 2_500) for _ in range(10)]
        result = await behind_proxy.read(options={"strategies": ["long"], "text": "Hi", **LANGUAGE}).ended()
        assert (proxy.cuts, result["text"]) == ([], ANSWER)


async def test_a_request_whose_response_was_lost_is_answered_once(
    behind_proxy: Program, proxy: UnreliableProxy, strategy: Configure, vendor: Vendor
) -> None:
    await strategy("hello", "say:Hello")
    proxy.cuts = [0, 0]
    result = await behind_proxy.read(options={"strategies": ["hello"], "text": "Hi", **LANGUAGE}).ended()
    assert (proxy.cuts, result["text"], len(vendor.calls)) == ([], "Hello", 1)


async def test_a_turn_goes_on_at_another_server(
    behind_proxy: Program, proxy: UnreliableProxy, other: Server, strategy: Configure, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    turn = behind_proxy.read(options={"strategies": ["slow"], "text": "Hi", **LANGUAGE})
    await turn.text("Once upon a time")
    proxy.target = URL(other.url)
    proxy.cut()
    vendor.release.set()
    assert (await turn.ended())["text"] == "Once upon a time"


async def test_an_interruption_that_lost_its_connection_is_repeated(
    behind_proxy: Program, proxy: UnreliableProxy, strategy: Configure
) -> None:
    await strategy("slow", "slow:Once upon a time")
    turn = behind_proxy.read(options={"strategies": ["slow"], "text": "Hi", **LANGUAGE})
    await turn.text("Once upon a time")
    proxy.down = True
    proxy.cut()
    async with background(behind_proxy.do("interrupt")) as interruption:
        await until(lambda: proxy.refused > 5)
        proxy.down = False
        await interruption
    assert (await turn.ended())["end"]["finish_reason"] == "canceled"


@pytest.mark.parametrize(
    ("altered", "error", "message"),
    [
        ((b'"text":"Hello', b'"text":"Jello'), "DigestMismatch", "did not arrive as it was sent"),
        ((b"id: 3", b"id: 9"), "NotUnderstood", "event 9 of the stream follows event 2"),
        (
            (b'{"content":"Hi"', b'["content":"Hi"'),
            "NotUnderstood",
            "an event user_input of the stream is malformed",
        ),
    ],
    ids=["text", "id", "json"],
)
async def test_what_was_altered_on_the_way_is_noticed(  # noqa: PLR0917 - fixtures and a case
    behind_proxy: Program,
    proxy: UnreliableProxy,
    strategy: Configure,
    altered: tuple[bytes, bytes],
    error: str,
    message: str,
) -> None:
    await strategy("hello", "say:Hello")
    proxy.altered = altered
    with pytest.raises(ClientError, match=f"{error}: .*{message}"):
        await behind_proxy.read(options={"strategies": ["hello"], "text": "Hi", **LANGUAGE}).ended()


async def test_a_busy_server_is_asked_again_after_the_time_that_it_names(
    user: Program, strategy: Configure, configure: Configure, vendor: Vendor
) -> None:
    await configure("limits", "default", {"streams_per_user": 1})
    await strategy("slow", "slow:Once")
    await strategy("hello", "say:Hello")
    first = user.read(name="first", options={"strategies": ["slow"], "text": "Hi", **LANGUAGE})
    await first.text("Once")
    with capture_logs() as lines:
        second = user.read(name="second", options={"strategies": ["hello"], "text": "Hi", **LANGUAGE})
        await until(lambda: any(line.get("status") == 429 for line in lines))
        vendor.release.set()
    assert (await first.ended())["text"] == "Once"
    assert (await second.ended())["text"] == "Hello"


async def test_the_app_is_told_of_a_connection_that_was_dropped(
    user: Program, strategy: Configure, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    turn = user.read(options={"strategies": ["slow"], "text": "Hi", **LANGUAGE})
    await turn.text("Once upon a time")
    await user.do("drop")
    vendor.release.set()
    result = await turn.ended()
    assert result["text"] == "Once upon a time"
    last = result["connections"][-1][1]
    [opened, lost, resumed, closed] = result["connections"]
    assert (opened, closed) == (["open", 0], ["none", last])
    assert lost == ["lost", resumed[1]]
    assert 0 < resumed[1] < last


async def test_a_turn_is_resumed_by_the_id_of_its_stream(
    user: Program, strategy: Configure, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    left = await user.read(
        options={"strategies": ["slow"], "text": "Hi", **LANGUAGE}, leaveAfter="assistant_output_chunk"
    ).ended()
    turn = user.read(resume=left["streamId"])
    await turn.text("Once upon a time")
    vendor.release.set()
    result = await turn.ended()
    assert (result["text"], result["userInput"]) == ("Once upon a time", "Hi")
    assert result["conversationId"] == left["conversationId"]
    assert result["connections"][0] == ["open", 0]
    with pytest.raises(ClientError) as raised:
        await user.read(resume="0" * 32).ended()
    assert raised.value.error["status"] == 404


async def test_leaving_early_closes_the_connection_and_not_the_turn(
    user: Program, server: Server, strategy: Configure, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    uid = (await user.call("session"))["uid"]
    left = await user.read(
        options={"strategies": ["slow"], "text": "Hi", **LANGUAGE}, leaveAfter="assistant_output_chunk"
    ).ended()
    actor = server.services.supervisor.find(left["streamId"], Owner("default", uid))
    assert actor is not None
    await until(lambda: actor.readers == 0)
    await user.do("interrupt")
    assert vendor.closed == ["slow:Once upon a time"]
    history = await user.call("history", left["conversationId"])
    assert history["conversation_records"][0]["status"] == "interrupted"
