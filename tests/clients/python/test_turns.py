"""Turns of a conversation with text."""

import pytest

from parley_client import End, Paragraph, ParleyClient, ParleyError, Start, TextChunk, UserInput
from tests.peers.vendor import Vendor


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


async def test_whoever_leaves_early_leaves_no_connection(client: ParleyClient, strategy, vendor: Vendor) -> None:
    await strategy("one", "slow:Once upon a time")
    async with client.converse(strategies=["one"], text="a story", language_code="en-US") as turn:
        async for event in turn:
            if isinstance(event, TextChunk):
                break
    with pytest.raises(RuntimeError, match="once"):
        aiter(turn)
    await turn.interrupt()
    assert vendor.closed == ["slow:Once upon a time"]
