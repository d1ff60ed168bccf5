"""A vendor's event stream is parsed by the rules of the HTML standard (§9.2.6), for every split."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.streams.pieces import by_byte, split
from vendors.http.sse import LIMIT_BYTES, ServerEvent, SseParser

CUTS = st.lists(st.integers(0, 200), max_size=8)


def parsed(pieces: list[bytes]) -> list[ServerEvent]:
    parser = SseParser()
    return [event for piece in pieces for event in parser.feed(piece)]


def payloads(pieces: list[bytes]) -> list[bytes]:
    parser = SseParser()
    return [payload for piece in pieces for payload in parser.payloads(piece)]


def expected(stream: bytes) -> list[ServerEvent]:
    """Return the events of a complete stream, parsed line by line as the standard describes."""
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events: list[ServerEvent] = []
    name, data = b"", b""
    for line in text.split(b"\n")[:-1]:
        if line == b"":
            if data:
                events.append(ServerEvent(name.decode("utf-8", "replace"), data[:-1]))
            name, data = b"", b""
        elif b":" in line:
            field, value = line.split(b":", 1)
            value = value[1:] if value[:1] == b" " else value
            if field == b"event":
                name = value
            if field == b"data":
                data += value + b"\n"
        elif line == b"event":
            name = b""
        elif line == b"data":
            data += b"\n"
    return events


TOKENS = [
    *(b"data", b"event", b"id", b"retry", b":", b": ", b" ", b"x", b"[DONE]", b'{"a":1}', "é😀".encode(), b"\xff"),
    *(
        b"\n",
        b"\n\n",
        b"\r\n",
        b"\r\n\r\n",
        b"\r",
        b"\xef\xbb\xbf",
        b"data: a\n",
        b"data:b\r",
        b"event: e\n",
        b":c\n",
    ),
]


@given(st.lists(st.sampled_from(TOKENS), max_size=30).map(b"".join), CUTS)
@example(b"data: a\r\n\r\ndata: b\r\n\r\n", [8, 9])
@example(b"data: a\r\r\ndata: b\n\n", [8, 9, 10])
@example(b"\xef\xbb\xbfdata: a\n\n", [1, 2])
@example(b"\xef\xbbdata: a\n\n", [1])
@example(b"data:a\r\n\rdata:b\r\n\r", [7])
def test_every_split_gives_the_events_of_the_standard(stream: bytes, at: list[int]):
    assert parsed([stream]) == expected(stream)
    assert parsed(split(stream, at)) == expected(stream)
    assert parsed(by_byte(stream)) == expected(stream)


@given(st.lists(st.sampled_from(TOKENS), max_size=30).map(b"".join), CUTS)
@example(b"data: a\n\ndata: b\n\nevent: c\ndata: c\n\ndata: d\n\n", [9, 18, 28])
@example(b"data: a\n\ndata: b\ndata: c\n\n", [9])
@example(b"data: a\n\ndata: b\r\n\r\n\ndata: c\n\n", [9, 18, 19, 21])
def test_payloads_are_those_of_the_events_for_every_split(stream: bytes, at: list[int]):
    data = [event.data for event in expected(stream)]
    assert payloads([stream]) == data
    assert payloads(split(stream, at)) == data
    assert payloads(by_byte(stream)) == data


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [("", b"YHOO\n+2\n10")]),
        (b": test\n\ndata: first\nid: 1\n\ndata:second\nid\n\ndata:  third\n", [("", b"first"), ("", b"second")]),
        (b"data\n\ndata\ndata\n\ndata:", [("", b""), ("", b"\n")]),
        (b"data:test\n\ndata: test\n\n", [("", b"test"), ("", b"test")]),
        (b"event: add\ndata: 1\n\ndata: 2\n\n", [("add", b"1"), ("", b"2")]),
        (b"event: add\n\ndata: 2\n\n", [("", b"2")]),
        (b"Data: a\n data: b\ndata : c\n\n", []),
        (b"data: a:b\n\n", [("", b"a:b")]),
        (b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", [("", b"a")]),
        ("event: é\ndata: 😀\u2028x\n\n".encode(), [("é", "😀\u2028x".encode())]),
        (b"event: \xff\ndata: \xff\n\n", [("\ufffd", b"\xff")]),
        (b"", []),
    ],
)
def test_examples_of_the_standard_are_parsed(stream: bytes, events: list[tuple[str, bytes]]):
    assert parsed([stream]) == parsed(by_byte(stream)) == [ServerEvent(*event) for event in events]


def test_events_are_yielded_at_their_blank_line():
    parser = SseParser()

    assert parser.feed(b"data: a\r\n") == []
    assert parser.feed(b"\r") == [ServerEvent("", b"a")]
    assert parser.feed(b"\n") == []
    assert parser.feed(b"data: b\n\n") == [ServerEvent("", b"b")]


def test_large_event_is_read_and_one_beyond_the_limit_refused():
    fitting = b"x" * (LIMIT_BYTES - 100)

    assert parsed([b"data: ", fitting, b"\n\n"]) == [ServerEvent("", fitting)]
    assert payloads([b"data: " + fitting + b"\n\n"]) == [fitting]
    for read in (parsed, payloads):
        with pytest.raises(ValueError, match="too large"):
            read([b"data: ", fitting, b"x" * 200])


@pytest.mark.parametrize("line", [b"data: " + b"x" * 90_000 + b"\n", b"data:\n" * 90_000])
def test_an_endless_event_is_refused(line: bytes):
    with pytest.raises(ValueError, match="too large"):
        parsed([line] * 50)


def test_the_limit_applies_to_each_event():
    event = b"data: " + b"x" * 1_000_000 + b"\n\n"

    assert len(parsed([event] * 9)) == 9
