"""Parsers of other projects read the encoded events, for any content and any split."""

from collections.abc import Callable, Iterator

import pytest
from httpx_sse._decoders import SSEDecoder, SSELineDecoder
from hypothesis import given
from hypothesis import strategies as st
from sseclient import SSEClient

from streams.events import AssistantOutputChunk, UserInput, encode, encode_ping
from streams.wire.codec import loads
from tests.streams.pieces import split

Seen = tuple[str, str, str]
"""The name, id and data of an event."""


def by_httpx_sse(pieces: list[bytes]) -> Iterator[Seen]:
    lines, events = SSELineDecoder(), SSEDecoder()
    text = b"".join(pieces).decode()  # This parser takes lines of text, which httpx has joined.
    for line in [*lines.decode(text), *lines.flush()]:
        if (event := events.decode(line)) is not None:
            yield event.event, event.id, event.data


def by_sseclient(pieces: list[bytes]) -> Iterator[Seen]:
    for event in SSEClient(iter(pieces)).events():
        yield event.event, event.id or "", event.data


@pytest.mark.parametrize("parse", [by_httpx_sse, by_sseclient])
@given(texts=st.lists(st.text(), max_size=6), cuts=st.lists(st.integers(0, 2000), max_size=8))
def test_every_event_is_read_as_it_was_written(
    parse: Callable[[list[bytes]], Iterator[Seen]], texts: list[str], cuts: list[int]
) -> None:
    said = [UserInput("\N{BYTE ORDER MARK}\u2028\r\n:"), *(AssistantOutputChunk(0, text) for text in texts)]
    frames = [encode(event, number, 1) for number, event in enumerate(said, 1)]
    seen = list(parse(split(b"".join([*frames, encode_ping(7)]), cuts)))
    assert [(name, id_) for name, id_, _ in seen[:-1]] == [
        (event.name, str(number)) for number, event in enumerate(said, 1)
    ]
    assert [loads(data)["content"] for _, _, data in seen[:-1]] == [event.content() for event in said]
    assert seen[-1][0] == "ping"
