"""Turns of a conversation with text."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from actors.runtime.context import Owner
from parley_client import End, Paragraph, ParleyClient, ParleyError, Session, Start, TextChunk, UserInput
from streams.tasks import background
from tests.app.ai.conftest import sandbox
from tests.app.ai.speech.ears import ears
from tests.browser.unreliable_proxy import proxy_to
from tests.clients.cases import SIGN_KEY
from tests.clients.python.conftest import PROMPT
from tests.peers.vendor import Vendor
from tests.running.servers import Server
from tests.streams.audio.pcm_samples import tone
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

__all__ = ["sandbox"]


async def test_a_turn_is_an_iterator_of_typed_events(client: ParleyClient, strategy, vendor: Vendor) -> None:
    await strategy("one", "say:Hello there")
    turn = client.converse(strategies=["one"], text="Grüße 😀", language_code="de-DE")
    assert (turn.stream_id, turn.conversation_id, turn.text, turn.end) == (None, None, "", None)
    seen = [event async for event in turn]
    assert [type(event) for event in seen if not isinstance(event, TextChunk)] == [Start, UserInput, Paragraph, End]
    assert [event.id for event in seen] == list(range(1, len(seen) + 1))
    assert (turn.user_input, turn.text) == ("Grüße 😀", "Hello there")
    assert turn.end is seen[-1]
    assert turn.end.finish_reason == "stop"
    assert (turn.end.conversation_id, turn.end.record_id) == (turn.conversation_id, 1)
    assert turn.stream_id

    second = client.converse(
        strategies=["one"], text="And now?", language_code="de-DE", conversation_id=turn.conversation_id
    )
    assert (await second.finish()).record_id == 2
    assert [message["content"] for message in vendor.calls[-1]["messages"]][-3:] == [
        "Grüße 😀",
        "Hello there",
        "And now?",
    ]


async def test_text_is_sent_while_it_is_written(
    server: Server, client: ParleyClient, strategy, vendor: Vendor
) -> None:
    """A connection that is lost meanwhile is no loss: the text is sent again from its beginning."""
    await strategy("one", "say:Hello there")
    begun = asyncio.Event()

    async def written() -> AsyncIterator[str | bytes]:
        yield "Gr"
        await begun.wait()
        yield b"\xc3"
        yield b"\xbc\xc3\x9fe"
        yield " 😀"

    async with (
        proxy_to(server.url) as proxy,
        ParleyClient(proxy.url, sign_key=SIGN_KEY, session=client.session, backoff=PROMPT) as cut,
    ):
        turn = cut.converse(strategies=["one"], text=written(), language_code="de-DE")
        async for event in turn:
            if isinstance(event, Start):
                proxy.cut()
                begun.set()
    assert (turn.user_input, turn.text, len(vendor.calls)) == ("Grüße 😀", "Hello there", 1)


async def test_the_error_of_a_stream_is_raised_after_what_was_said(client: ParleyClient, strategy) -> None:
    await strategy("one", "error:Once upon a time")
    turn = client.converse(strategies=["one"], text="a story", language_code="en-US")
    with pytest.raises(ParleyError) as failed:
        await turn.finish()
    assert (failed.value.error_type, failed.value.status, failed.value.retryable) == (
        "backend_unavailable",
        None,
        True,
    )
    assert failed.value.extra["record_id"] == 1
    assert (turn.text, turn.end) == ("Once upon a time", None)


async def test_a_request_that_is_refused_has_no_stream(client: ParleyClient) -> None:
    turn = client.converse(strategies=["nobody"], text="Hello", language_code="en-US")
    with pytest.raises(ParleyError) as refused:
        await turn.finish()
    assert (refused.value.error_type, refused.value.status) == ("item_not_found", 404)
    assert turn.stream_id is None
    await turn.interrupt()


@pytest.mark.parametrize("given", [{"text": "Hello"}, {"audio": tone(0.5)}], ids=["text", "audio"])
async def test_a_session_that_ended_in_mid_use_is_renewed_and_the_turn_answered_once(
    client: ParleyClient, server: Server, sandbox: Running, given: dict
) -> None:
    async def sign_in(expired: ParleyClient) -> None:
        await expired.sign_in("device", {"id": "a device of the tests"})

    await ears(server, sandbox, "one", key=key_of(text="Hello"))
    ended = client.session
    await client.sign_out()
    async with ParleyClient(
        server.url, sign_key=SIGN_KEY, session=ended, on_session_expired=sign_in, backoff=PROMPT
    ) as renewed:
        turn = renewed.converse(strategies=["one"], language_code="en-US", **given)
        assert (await turn.finish()).record_id == 1
        assert renewed.session != ended
    assert turn.user_input == "Hello"
    assert len([call for call in sandbox.bill.since() if call.stage == "llm"]) == 1


async def test_a_session_that_ends_in_mid_conversation_is_renewed(
    client: ParleyClient, server: Server, strategy, vendor: Vendor
) -> None:
    """It ends between two turns, and again while the stream of the second one is cut."""

    async def sign_in(expired: ParleyClient) -> None:
        await expired.sign_in("device", {"id": "a device of the tests"})

    async def end_session() -> None:
        sessions.append(talking.session)
        async with ParleyClient(server.url, sign_key=SIGN_KEY, session=talking.session) as other:
            await other.sign_out()

    sessions: list[Session | None] = []
    await strategy("one", "say:Hello there")
    await strategy("slow", "slow:Once upon a time")
    async with (
        proxy_to(server.url) as proxy,
        ParleyClient(
            proxy.url, sign_key=SIGN_KEY, session=client.session, on_session_expired=sign_in, backoff=PROMPT
        ) as talking,
    ):
        first = talking.converse(strategies=["one"], text="Hello", language_code="en-US")
        await first.finish()
        await end_session()
        second = talking.converse(
            strategies=["slow"], text="a story", language_code="en-US", conversation_id=first.conversation_id
        )
        ids = []
        async for event in second:
            ids.append(event.id)
            if second.text == "Once upon a time" and not vendor.release.is_set():
                await end_session()
                proxy.cut()
                vendor.release.set()
        sessions.append(talking.session)
    assert len({session.token for session in sessions if session}) == 3
    assert ids == list(range(1, len(ids) + 1))
    assert second.end is not None
    assert (second.text, second.end.record_id, second.end.finish_reason) == ("Once upon a time", 2, "stop")
    assert len(vendor.calls) == 2


async def test_a_task_that_is_cancelled_leaves_no_connection(
    client: ParleyClient, strategy, vendor: Vendor
) -> None:
    await strategy("one", "slow:Once upon a time")
    turn = client.converse(strategies=["one"], text="a story", language_code="en-US")
    async with background(turn.finish()):
        await vendor.begun.wait()
        await until(lambda: turn.text)
    await turn.interrupt()
    assert vendor.closed == ["slow:Once upon a time"]
    assert turn.end is None


@pytest.mark.parametrize("way", ["break", "leave"])
async def test_whoever_leaves_early_leaves_no_connection(
    client: ParleyClient, server: Server, strategy, vendor: Vendor, way: str
) -> None:
    await strategy("one", "slow:Once upon a time")
    turn = client.converse(strategies=["one"], text="a story", language_code="en-US")
    async for event in turn:
        if isinstance(event, TextChunk):
            if way == "break":
                break
            turn.leave()
    owner = Owner("default", client.session.uid if client.session else "")
    actor = server.services.supervisor.find(turn.stream_id or "", owner)
    assert actor is not None
    await until(lambda: actor.readers == 0)
    with pytest.raises(ParleyError, match="left before its end"):
        aiter(turn)
    assert vendor.closed == [], "the server goes on for a while"
    await turn.interrupt()
    assert vendor.closed == ["slow:Once upon a time"]
