"""Turns survive lost connections: nothing is missing, repeated or answered twice."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Any

import pytest
from yarl import URL

from parley_client import (
    AudioChunk,
    AudioFile,
    Backoff,
    ConnectionLost,
    ConnectionState,
    DigestMismatch,
    End,
    Event,
    EventStream,
    ParleyClient,
    ParleyError,
    TextChunk,
)
from streams.tasks import background
from streams.wire.codec import dumps
from tests.app.ai.conftest import other, sandbox
from tests.browser.unreliable_proxy import UnreliableProxy, proxy_to
from tests.clients.cases import SIGN_KEY, cases, named
from tests.clients.conftest import configure
from tests.clients.cuts import COUNTS, QUESTION, check_cuts, cuts, speaking_strategy
from tests.clients.python.conftest import PROMPT
from tests.clients.scripted_server import BRIEF, scripted_server
from tests.peers.vendor import Vendor
from tests.running.servers import Server
from tests.streams.audio.pcm_samples import tone
from tests.waiting import until
from vendors.sandbox.server import Running

__all__ = ["other", "sandbox"]


@pytest.mark.parametrize("case", **named(cases("streams")))
async def test_a_turn_is_read_as_the_case_says(case: dict) -> None:
    async with scripted_server(case["responses"]) as scripted, ParleyClient(scripted.url, backoff=PROMPT) as client:
        microphone = Microphone()
        said = {"audio": microphone.pieces()} if "turn_detection" in case else {"text": "Hello"}
        detection = case.get("turn_detection")
        turn = client.converse(strategies=["one"], language_code="en-US", turn_detection=detection, **said)
        seen = {"finish_reason": None, "error_type": None}
        try:
            seen["finish_reason"] = (await turn.finish()).finish_reason
        except ParleyError as error:
            seen["error_type"] = error.error_type
    assert seen == {name: case.get(name) for name in seen}
    assert (scripted.asked, turn.text) == (case["asked"], case["text"])
    assert len(scripted.keys) == 1, "a repeated request must have the same Idempotency-Key"
    if detection is not None:
        assert dumps({"turn_detection": detection})[1:-1] in scripted.spoken
        await until(lambda: microphone.closed)


@pytest.mark.parametrize("kind", ["turn", "speech"])
@pytest.mark.parametrize("case", **named(cases("uses")))
async def test_a_stream_is_used_as_the_case_says(case: dict, kind: str) -> None:
    async with scripted_server([BRIEF]) as scripted, ParleyClient(scripted.url, backoff=PROMPT) as client:
        turn = client.converse(strategies=["one"], language_code="en-US", text="Hello")
        use = Use(turn if kind == "turn" else client.speak("Hello", strategies=["one"]))
        *steps, last = case["steps"]
        for step in steps:
            await getattr(use, step)()
        if "error" not in case:
            assert await getattr(use, last)() == case["seen"]
        else:
            with pytest.raises(ParleyError) as raised:
                await getattr(use, last)()
            assert (str(raised.value), raised.value.error_type) == (case["error"], "invalid_operation")
            assert not raised.value.retryable
    assert scripted.asked == case["asked"]


@dataclass
class Use:
    """The steps of `uses.json`."""

    stream: EventStream
    events: AsyncIterator[Event] | None = None

    async def begin(self) -> None:
        self.events = aiter(self.stream)

    async def next(self) -> None:
        self.events = aiter(self.stream)
        await anext(self.events)

    async def leave(self) -> None:
        self.stream.leave()
        if self.events is not None:
            assert await anext(self.events, None) is None

    async def rest(self) -> str | None:
        assert self.events is not None
        return self._ended([event async for event in self.events])

    async def read(self) -> str | None:
        return self._ended([event async for event in self.stream])

    async def finish(self) -> str:
        return (await self.stream.finish()).finish_reason

    async def interrupt(self) -> None:
        await self.stream.interrupt()

    @staticmethod
    def _ended(events: list[Event]) -> str | None:
        return events[-1].finish_reason if isinstance(events[-1], End) else None


@dataclass
class Microphone:
    """It records one piece, and then waits without an end."""

    closed: bool = False

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            yield tone(0.1)
            await asyncio.Event().wait()
        finally:
            self.closed = True


@pytest.fixture
async def proxy(server: Server):
    async with proxy_to(server.url) as opened:
        yield opened


@pytest.fixture
async def cut_client(client: ParleyClient, proxy: UnreliableProxy):
    """A client that is signed in and behind a proxy."""
    async with ParleyClient(proxy.url, sign_key=SIGN_KEY, session=client.session, backoff=PROMPT) as opened:
        yield opened


async def test_a_turn_is_resumed_in_another_process(
    cut_client: ParleyClient, proxy: UnreliableProxy, strategy, vendor: Vendor, other: Server
) -> None:
    await strategy("one", "slow:Once upon a time")
    turn = cut_client.converse(strategies=["one"], text="a story", language_code="en-US")
    ids = []
    async for event in turn:
        ids.append(event.id)
        if isinstance(event, TextChunk) and not vendor.release.is_set():
            proxy.target = URL(other.url)
            proxy.cut()
            vendor.release.set()
    assert turn.text == "Once upon a time"
    assert ids == list(range(1, len(ids) + 1))
    assert len(vendor.calls) == 1


async def test_the_app_is_told_of_a_connection_that_was_dropped(
    client: ParleyClient, strategy, vendor: Vendor
) -> None:
    await strategy("one", "slow:Once upon a time")
    connections = []

    def note(state: ConnectionState, after_id: int) -> None:
        connections.append((state, after_id))
        assert turn.connection == state

    turn = client.converse(strategies=["one"], text="a story", language_code="en-US", on_connection=note)
    async for _ in turn:
        if turn.text == "Once upon a time" and not vendor.release.is_set():
            turn.drop_connection()
            vendor.release.set()
    assert turn.end is not None
    opened, (lost, cut), resumed, closed = connections
    assert (opened, lost, resumed, closed) == (("open", 0), "lost", ("open", cut), ("none", turn.end.id))
    assert 0 < cut < turn.end.id


async def test_a_turn_is_resumed_by_the_id_of_its_stream(client: ParleyClient, strategy, vendor: Vendor) -> None:
    await strategy("one", "slow:Once upon a time")
    left = client.converse(strategies=["one"], text="a story", language_code="en-US")
    async with left:
        async for event in left:
            if isinstance(event, TextChunk):
                break
    connections = []
    turn = client.resume(left.stream_id or "", on_connection=lambda *change: connections.append(change))
    events = []
    async for event in turn:
        events.append(event)
        if turn.text == "Once upon a time":
            vendor.release.set()
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    assert (turn.text, turn.user_input, turn.end) == ("Once upon a time", "a story", events[-1])
    assert turn.conversation_id == left.conversation_id
    assert connections == [("open", 0), ("none", len(events))]
    with pytest.raises(ParleyError) as gone:
        await client.resume("0" * 32).finish()
    assert gone.value.status == 404


async def test_a_turn_that_was_resumed_by_its_id_is_interrupted_before_it_is_read(
    client: ParleyClient, strategy, vendor: Vendor
) -> None:
    await strategy("one", "slow:Once upon a time")
    async with client.converse(strategies=["one"], text="a story", language_code="en-US") as left:
        await anext(aiter(left))
    turn = client.resume(left.stream_id or "")
    await turn.interrupt()
    assert (await turn.finish()).finish_reason == "canceled"
    assert vendor.closed == ["slow:Once upon a time"]


async def test_a_request_that_lost_its_response_is_answered_once(
    cut_client: ParleyClient, proxy: UnreliableProxy, strategy, vendor: Vendor
) -> None:
    await strategy("one", "say:Hello there")
    proxy.cuts = [0, 10]
    turn = cut_client.converse(strategies=["one"], text="Hello", language_code="en-US")
    assert (await turn.finish()).record_id == 1
    assert (turn.text, proxy.cuts, len(vendor.calls)) == ("Hello there", [], 1)


async def test_an_interruption_that_lost_its_connection_is_repeated(
    cut_client: ParleyClient, proxy: UnreliableProxy, strategy, vendor: Vendor
) -> None:
    await strategy("one", "slow:Once upon a time")
    turn = cut_client.converse(strategies=["one"], text="a story", language_code="en-US")
    events = aiter(turn)
    await anext(events)
    proxy.down = True
    proxy.cut()
    async with background(turn.interrupt()) as interruption:
        await until(lambda: proxy.refused > 5)
        proxy.down = False
        await interruption
    rest = [event async for event in events]
    assert turn.end is rest[-1]
    assert turn.end.finish_reason == "canceled"


async def test_text_that_was_altered_on_its_way_is_found(
    cut_client: ParleyClient, proxy: UnreliableProxy, strategy
) -> None:
    await strategy("one", "say:Hello there")
    proxy.altered = (b"Hello", b"Hollo")
    with pytest.raises(DigestMismatch):
        await cut_client.converse(strategies=["one"], text="Hi", language_code="en-US").finish()


async def test_a_client_that_cannot_resume_gives_up(
    client: ParleyClient, proxy: UnreliableProxy, strategy, vendor: Vendor
) -> None:
    await strategy("one", "slow:Once upon a time")
    hasty = Backoff(first_s=0.01, longest_s=0.02, begin_s=0.05, resume_s=0.05)
    async with ParleyClient(proxy.url, sign_key=SIGN_KEY, session=client.session, backoff=hasty) as lost:
        turn = lost.converse(strategies=["one"], text="a story", language_code="en-US")
        events = aiter(turn)
        await anext(events)
        proxy.down = True
        proxy.cut()
        with pytest.raises(ConnectionLost):
            _ = [event async for event in events]
        with pytest.raises(ConnectionLost):
            await lost.converse(strategies=["one"], text="a story", language_code="en-US").finish()


async def test_a_client_repeats_nothing_earlier_than_the_server_asks_for(
    client: ParleyClient, strategy, server: Server, vendor: Vendor
) -> None:
    await strategy("one", "slow:Once upon a time")
    await configure(server, "limits", {"streams_per_user": 1})
    async with client.converse(strategies=["one"], text="a story", language_code="en-US") as first:
        await anext(aiter(first))
        hasty = Backoff(first_s=0.01, begin_s=0.5)
        async with ParleyClient(server.url, sign_key=SIGN_KEY, session=client.session, backoff=hasty) as second:
            with pytest.raises(ParleyError) as refused:
                await second.converse(strategies=["one"], text="another", language_code="en-US").finish()
    error = refused.value
    assert (error.error_type, error.status, error.retry_after, error.retryable) == ("api_rate_limit", 429, 1, True)
    assert hasty.delay_s(0, error.retry_after) == 1


def test_delays_grow_to_a_bound_and_differ() -> None:
    delays = [[Backoff().delay_s(tries, None) for _ in range(20)] for tries in (0, 1, 10)]
    assert 0.2 <= min(delays[0]) < max(delays[0]) <= 0.4
    assert 0.4 <= min(delays[1]) < max(delays[1]) <= 0.8
    assert 4 <= min(delays[2]) < max(delays[2]) <= 8


@COUNTS
async def test_cuts_while_an_answer_is_written_lose_nothing(
    cut_client: ParleyClient, proxy: UnreliableProxy, strategy, vendor: Vendor, count: int
) -> None:
    await strategy("one", f"held:{count * 3}")
    proxy.cuts = cuts(count, 4_000)
    connections = []

    def note(*change: Any) -> None:
        connections.append(change)
        if not proxy.cuts:
            vendor.release.set()  # The answer ends after the last cut.

    turn = cut_client.converse(strategies=["one"], text="Go on", language_code="en-US", on_connection=note)
    outputs = [(event.id, event.text) async for event in turn if isinstance(event, TextChunk)]
    assert turn.end is not None
    digest = asdict(turn.end.digest)
    check_cuts(count, outputs, digest=digest, end_id=turn.end.id, connections=connections)
    assert "".join(text for _, text in outputs) == turn.text == " ".join(["word" * 256] * count * 3)
    assert (proxy.cuts, len(vendor.calls)) == ([], 1)


@COUNTS
async def test_cuts_while_an_answer_is_spoken_lose_nothing(
    cut_client: ParleyClient, proxy: UnreliableProxy, server: Server, sandbox: Running, count: int
) -> None:
    answer = await speaking_strategy(server, sandbox, "one", count)
    proxy.cuts = cuts(count, 4_000)
    connections = []
    turn = cut_client.converse(
        strategies=["one"], audio=tone(1.0), language_code="en-US", on_connection=lambda *at: connections.append(at)
    )
    outputs, files = [], []
    async for event in turn:
        match event:
            case TextChunk(id=event_id, text=text):
                outputs.append((event_id, text))
            case AudioChunk(id=event_id, audio=audio):
                outputs.append((event_id, audio))
            case AudioFile():
                files.append(event)
    assert turn.end is not None
    digest = asdict(turn.end.digest)
    check_cuts(count, outputs, digest=digest, end_id=turn.end.id, connections=connections)
    assert (turn.user_input, turn.text, proxy.cuts) == (QUESTION, answer, [])
    (file,) = files
    async with server.http.get(file.audio_url) as stored:
        assert b"".join(sound for _, sound in outputs if isinstance(sound, bytes)) == await stored.read()
    assert len([call for call in sandbox.bill.since() if call.stage == "llm"]) == 1
