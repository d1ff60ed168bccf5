"""Turns whose connections break: the TypeScript client resumes them, and notices what is missing."""

from base64 import b64decode
from typing import Any

import pytest
from structlog.testing import capture_logs
from yarl import URL

from actors.runtime.context import Owner
from streams.tasks import background
from tests.app.ai.conftest import other
from tests.browser.unreliable_proxy import UnreliableProxy
from tests.clients.cuts import COUNTS, QUESTION, check_cuts, cuts, speaking_strategy
from tests.clients.typescript.conftest import Configure
from tests.clients.typescript.program import ClientError, Program, sent
from tests.peers.vendor import Vendor
from tests.running.servers import Server
from tests.streams.audio.pcm_samples import tone
from tests.waiting import until
from vendors.sandbox.server import Running

__all__ = ["other"]

LANGUAGE = {"languageCode": "en-US"}


@COUNTS
async def test_cuts_while_an_answer_is_written_lose_nothing(
    behind_proxy: Program, proxy: UnreliableProxy, strategy: Configure, vendor: Vendor, count: int
) -> None:
    await strategy("long", f"held:{count * 3}")
    proxy.cuts = cuts(count, 4_000)
    turn = behind_proxy.read(options={"strategies": ["long"], "text": "Hi", **LANGUAGE})
    await until(lambda: not proxy.cuts)
    vendor.release.set()  # The answer ends after the last cut.
    result, events = await turn.ended(), turn.received()
    check(count, events, result)
    assert result["text"] == " ".join(["word" * 256] * count * 3)
    assert result["end"]["finish_reason"] == "stop"
    assert len(vendor.calls) == 1


@COUNTS
async def test_cuts_while_an_answer_is_spoken_lose_nothing(
    behind_proxy: Program, proxy: UnreliableProxy, server: Server, sandbox: Running, count: int
) -> None:
    answer = await speaking_strategy(server, sandbox, "long", count)
    proxy.cuts = cuts(count, 4_000)
    turn = behind_proxy.read(options={"strategies": ["long"], **LANGUAGE}, says="audio")
    await behind_proxy.do("piece", piece=sent(tone(1.0)))
    await behind_proxy.do("piece")
    result, events = await turn.ended(), turn.received()
    check(count, events, result)
    assert (result["userInput"], result["text"], proxy.cuts) == (QUESTION, answer, [])
    (url,) = [event["content"]["audio_url"] for event in events if event["name"] == "assistant_output_audio"]
    async with server.http.get(url) as stored:
        assert b"".join(sound for _, sound in outputs_of(events) if isinstance(sound, bytes)) == await stored.read()
    assert len([call for call in sandbox.bill.since() if call.stage == "llm"]) == 1


def check(count: int, events: list[dict[str, Any]], result: dict[str, Any]) -> None:
    digest, connections = result["end"]["digest"], result["connections"]
    check_cuts(count, outputs_of(events), digest=digest, end_id=events[-1]["id"], connections=connections)


def outputs_of(events: list[dict[str, Any]]) -> list[tuple[int, str | bytes]]:
    """Return the texts and the audio of events, with their ids."""
    texts = [(event["id"], event["content"]["text"]) for event in events if event["name"].endswith("_output_chunk")]
    sounds = [
        (event["id"], b64decode(event["content"]["audio"]))
        for event in events
        if event["name"].endswith("_audio_chunk")
    ]
    return sorted(texts + sounds)


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
