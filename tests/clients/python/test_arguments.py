"""What the Python client does with arguments that the server would not understand, and with a cut response."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest

from parley_client import Backoff, ConnectionLost, NotUnderstood, ParleyClient, ParleyError, verify_webhook
from streams.wire.codec import loads
from tests.clients.cases import cases, named
from tests.clients.scripted_server import Asked, recording_server

STREAM = "0" * 32


@pytest.fixture
async def recorded() -> AsyncIterator[tuple[ParleyClient, list[Asked]]]:
    async with recording_server() as (url, asked), ParleyClient(url) as client:
        yield client, asked


@pytest.mark.parametrize("case", **named(cases("arguments")["base_urls"]))
def test_a_base_url_is_checked_at_once(case: dict) -> None:
    if case["valid"]:
        ParleyClient(case["url"])
        return
    with pytest.raises(ValueError, match="base URL must be like https://"):
        ParleyClient(case["url"])


@pytest.mark.parametrize("case", **named(cases("arguments")["ids"]))
async def test_an_id_is_one_part_of_the_path(case: dict, recorded: Any) -> None:
    client, asked = recorded
    if "part" in case:
        await client.delete_conversation(case["id"])
        assert [one.target for one in asked] == [f"/bp/ai/conversation/{case['part']}"]
        return
    await refused(client.delete_conversation(case["id"]))
    await refused(client.resume(case["id"]).interrupt())
    await refused(client.images.read(case["id"]))
    assert asked == []


@pytest.mark.parametrize("case", **named(cases("arguments")["times"]))
async def test_measured_times_are_sent_as_whole_numbers(case: dict, recorded: Any) -> None:
    client, asked = recorded
    time = float(case["given"])
    said: Any = {"strategies": ["one"], "language_code": "en-US", "text": "Hello"}
    if "sent" not in case:
        await refused(client.resume(STREAM).interrupt(heard_ms=time))
        with pytest.raises(ParleyError, match="invalid_parameter: silence_ms"):
            client.converse(**said, turn_detection={"silence_ms": time})
        await refused(client.images.imagine("one", {}, wait_s=time))
        assert asked == []
        return
    await client.resume(STREAM).interrupt(heard_ms=time)
    assert asked[0].target == f"/bp/ai/stream/{STREAM}?heard_ms={case['sent']}"
    with pytest.raises(NotUnderstood, match="not a stream"):
        await client.converse(**said, turn_detection={"silence_ms": time}).finish()
    assert loads(asked[1].body.removesuffix(b"Hello"))["turn_detection"] == {"silence_ms": case["sent"]}


async def test_a_wait_for_an_image_is_a_whole_number_of_seconds(recorded: Any) -> None:
    client, asked = recorded
    await client.images.imagine("one", {}, wait_s=1.5)
    assert asked[0].headers["Prefer"] == "wait=2"


async def test_a_number_that_json_has_not_is_an_error(recorded: Any) -> None:
    client, asked = recorded
    await refused(client.leaderboards.upload("weekly", float("nan")))
    assert asked == []


def test_the_body_of_a_webhook_is_what_has_arrived() -> None:
    case = cases("signatures")["webhooks"][0]
    given: Any = (case["headers"], case["secrets"])
    assert verify_webhook(given[0], case["body"], given[1], now=case["now"])["event"] == "account"
    parsed: Any = loads(case["body"].encode())
    with pytest.raises(TypeError, match="body must be the raw bytes or text, not a parsed object"):
        verify_webhook(given[0], parsed, given[1], now=case["now"])


@pytest.mark.parametrize(
    ("sent", "cause"),
    [
        (b"", "the server has closed the connection"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Le",
            "the server has closed the connection",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{", "the response broke off"),
    ],
    ids=["before its headers", "in its headers", "in its body"],
)
async def test_a_cut_response_is_told_in_words(sent: bytes, cause: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with ParleyClient(url, backoff=Backoff(begin_s=0)) as client:
            with pytest.raises(ConnectionLost) as raised:
                await client.user()
    assert str(raised.value) == f"connection_lost: {cause}"


async def refused(call: Awaitable[object]) -> None:
    with pytest.raises(ParleyError) as raised:
        await call
    error = raised.value
    assert (error.error_type, error.status, error.retryable) == ("invalid_parameter", None, False)
