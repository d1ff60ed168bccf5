"""A response is parsed the same for every split, is bounded, and is complete only at its end."""

import asyncio
import gzip
import zlib
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from itertools import pairwise
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vendors.http.http1.errors import BrokenResponse
from vendors.http.http1.response import MAX_HEAD_BYTES, Response

T = TypeVar("T")

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n"
    b"Empty:\r\n\r\n"
    b"6;a=b\r\ndata: \r\n003\r\nx\n\n\r\n0\r\nTrailer: t\r\n\r\n"
)
COUNTED = b"HTTP/1.1 201 Created\r\ncontent-length: 5\r\nX-A: 1\r\nX-A: 2\r\n\r\nhello"
TO_THE_END = b"HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\nall that comes"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
CLOSING = b"HTTP/1.1 500 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"
ANSWERS = [CHUNKED, COUNTED, TO_THE_END, INTERIM + CHUNKED, INTERIM + COUNTED, EMPTY, CLOSING]


def run(coro: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, without an event loop."""
    try:
        coro.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


def fed(pieces: Iterable[bytes], *, ended: bool = True) -> Response:
    """Return a response that is fed with `pieces`. An error is reported to it like a connection does."""
    answer = Response()
    try:
        for piece in pieces:
            if not answer.complete:
                answer.feed(piece)
        if ended:
            answer.end()
    except BrokenResponse as error:
        answer.end(error)
    return answer


def body(answer: Response) -> bytes:
    whole = b""
    while piece := run(answer.read()):
        whole += piece
    return whole


def reported(answer: Response) -> tuple[Any, ...]:
    """Return everything that a response contains."""
    run(answer.head())
    return answer.status, list(answer.headers.items()), body(answer), answer.complete, answer.reusable


def split(raw: bytes, at: Iterable[int]) -> list[bytes]:
    marks = [0, *sorted(mark % (len(raw) + 1) for mark in at), len(raw)]
    return [raw[a:b] for a, b in pairwise(marks)]


def test_head_and_body_are_read():
    answer = fed([CHUNKED])

    assert reported(answer) == (
        200,
        [
            ("Transfer-Encoding", "chunked"),
            ("Content-Type", "Text/Event-Stream; charset=utf-8"),
            ("Empty", ""),
        ],
        b"data: x\n\n",
        True,
        True,
    )
    assert answer.content_type == "text/event-stream"
    assert answer.headers["content-TYPE"] == "Text/Event-Stream; charset=utf-8"


@pytest.mark.parametrize("raw", ANSWERS)
def test_single_bytes_give_the_same_result(raw: bytes):
    assert reported(fed(raw[i : i + 1] for i in range(len(raw)))) == reported(fed([raw]))


@given(st.sampled_from(ANSWERS), st.lists(st.integers(0, 400), max_size=8))
def test_every_split_gives_the_same(raw: bytes, at: list[int]):
    assert reported(fed(split(raw, at))) == reported(fed([raw]))


@pytest.mark.parametrize("raw", [CHUNKED, COUNTED, INTERIM + CHUNKED, INTERIM + COUNTED, CLOSING, EMPTY])
def test_an_answer_truncated_anywhere_is_incomplete(raw: bytes):
    for size in range(len(raw)):
        answer = fed([raw[:size]])
        assert not answer.complete
        with pytest.raises((BrokenResponse, OSError)) as fault:
            reported(answer)
        assert isinstance(fault.value, BrokenResponse) == bool(answer.status)


def test_an_answer_without_a_length_ends_with_its_connection():
    assert body(fed([TO_THE_END])) == b"all that comes"
    assert not fed([TO_THE_END], ended=False).complete
    reset = fed([TO_THE_END], ended=False)
    reset.end(ConnectionResetError())
    assert run(reset.read()) == b"all that comes"
    with pytest.raises(BrokenResponse):
        run(reset.read())


def test_output_before_an_error_is_yielded():
    answer = fed([CHUNKED.partition(b"\r\n0\r\n")[0]])

    assert run(answer.read()) == b"data: x\n\n"
    with pytest.raises(BrokenResponse, match="the response is truncated"):
        run(answer.read())


@pytest.mark.parametrize("raw", [COUNTED, CHUNKED, EMPTY])
@pytest.mark.parametrize("more", [b"H", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", b"\0", b"GARBAGE"])
def test_bytes_after_an_answer_are_not_part_of_it(raw: bytes, more: bytes):
    assert reported(fed([raw + more]))[:4] == reported(fed([raw]))[:4]
    assert not fed([raw + more]).reusable


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b"220 mail.example ESMTP\r\n", "Expected HTTP"),
        (b"HTTP/1.1 abc OK\r\n\r\n", "status"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: other\r\nConnection: upgrade\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", "Content-Length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "chunk size"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "Content-Length"),
    ],
)
def test_a_response_that_is_not_http_is_an_error(raw: bytes, what: str):
    with pytest.raises(BrokenResponse, match=what):
        reported(fed([raw]))


@given(st.binary(max_size=200), st.sampled_from([b"", COUNTED[:40], CHUNKED[:120], CHUNKED[:130]]))
def test_arbitrary_bytes_end_in_an_error_or_an_answer(nonsense: bytes, before: bytes):
    with suppress(BrokenResponse, OSError):
        reported(fed([before, nonsense]))


def head_of(size: int) -> bytes:
    begun, ended = b"HTTP/1.1 200 OK\r\nX: ", b"\r\nContent-Length: 2\r\n\r\n"
    return begun + b"x" * (size - len(begun) - len(ended)) + ended


@pytest.mark.parametrize("step", [1, 1000, 1 << 20])
def test_response_heads_have_a_size_limit(step: int):
    largest, larger = head_of(MAX_HEAD_BYTES) + b"ok", head_of(MAX_HEAD_BYTES + 1) + b"ok"

    assert body(fed(largest[i : i + step] for i in range(0, len(largest), step))) == b"ok"
    with pytest.raises(BrokenResponse, match="head is too large"):
        reported(fed(larger[i : i + step] for i in range(0, len(larger), step)))


@pytest.mark.parametrize(
    ("begun", "endless"),
    [
        (b"", INTERIM),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", b"A: b\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;", b"a=b;"),
    ],
)
def test_bytes_before_a_body_have_a_limit(begun: bytes, endless: bytes):
    answer = fed([begun, *[endless] * ((1 << 19) // len(endless))], ended=False)

    with pytest.raises(BrokenResponse):
        reported(answer)


def raw_deflate(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


TEXT = b"data: one\n\n" * 50


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", gzip.compress(TEXT, mtime=0)),
        ("X-Gzip", gzip.compress(TEXT, mtime=0)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
        ("identity", TEXT),
    ],
)
@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_compressed_bodies_are_decompressed(coding: str, packed: bytes, step: int):
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {len(packed)}\r\n\r\n".encode()

    async def read() -> bytes:
        answer = Response()
        answer.feed(head)
        whole = b""
        for i in range(0, len(packed), step):
            answer.feed(packed[i : i + step])
            if answer.complete:
                break
        while piece := await answer.read():
            whole += piece
        return whole

    assert run(read()) == TEXT


@pytest.mark.parametrize(
    ("coding", "raw"),
    [
        ("br", TEXT),
        ("gzip", TEXT),
        ("deflate", b"\x07nothing"),
        ("gzip", gzip.compress(TEXT, mtime=0)[:-9]),
        ("gzip, br", TEXT),
    ],
)
def test_a_body_with_another_encoding_is_malformed(coding: str, raw: bytes):
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {len(raw)}\r\n\r\n".encode()

    with pytest.raises(BrokenResponse):
        body(fed([head + raw]))


def test_small_compressed_bodies_are_decompressed_in_pieces():
    packed = gzip.compress(bytes(64 << 20))
    answer = fed(
        [f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()],
        ended=False,
    )
    answer.feed(packed)

    sizes = []
    while piece := run(answer.read()):
        sizes.append(len(piece))

    assert sum(sizes) == 64 << 20
    assert max(sizes) <= 256 << 10


async def test_readers_are_woken_by_new_events():
    answer = Response()
    loop = asyncio.get_running_loop()
    loop.call_soon(answer.feed, COUNTED[:-5])
    loop.call_soon(answer.wake)
    await answer.head()
    for letter in b"hello":
        loop.call_soon(answer.feed, bytes([letter]))
        loop.call_soon(answer.wake)
        assert await answer.read() == bytes([letter])

    assert await answer.read() == b""
