"""Parameters and input are found in a chunked body, whatever its pieces."""

import asyncio
import json  # noqa: TID251 - another encoder to compare with
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streams.body import ChunkReader, FirstObject, InputLimits, Part
from streams.wire.errors import InvalidParameter, TooLarge
from tests.streams.pieces import by_byte, split

LIMITS = InputLimits(parameters_bytes=200, parameters_s=5, idle_s=5, total_s=5)
LEAF = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.text('"\\{}[]\n é😀', max_size=6)
OBJECTS = st.dictionaries(
    LEAF.map(str),
    st.recursive(
        LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_size=3,
).map(lambda value: json.dumps(value, ensure_ascii=bool(len(value) % 2)).encode())
CUTS = st.lists(st.integers(0, 120), max_size=6)
BLANK = st.text(" \t\r\n", max_size=3).map(str.encode)
Read = tuple[bytes, bytes] | str


async def source(pieces: Iterable[bytes], *, chunk_ends: bool = True) -> AsyncIterator[Part]:
    for piece in pieces:
        yield piece, chunk_ends


def reader_of(parts: AsyncIterator[Part], limits: InputLimits = LIMITS) -> ChunkReader:
    async def read() -> Part:
        try:
            return await anext(parts)
        except StopAsyncIteration:
            return b"", False

    return ChunkReader(read, limits)


async def input_of(reader: ChunkReader) -> AsyncIterator[Part]:
    while (part := await reader.next_part()) is not None:
        yield part


def read(pieces: Iterable[bytes], limits: InputLimits = LIMITS) -> Read:
    """Return the parameters and the input, or the message and status of the error."""

    async def reading() -> Read:
        reader = reader_of(source(pieces), limits)
        try:
            parameters = await reader.first_json()
            return parameters, b"".join([piece async for piece, _ in input_of(reader)])
        except InvalidParameter as error:
            return f"{error.status} {error}"

    return asyncio.run(reading())


def scanned(pieces: Iterable[bytes], limit_bytes: int = LIMITS.parameters_bytes) -> Read | None:
    """Feed the scanner with pieces. Return the object and all bytes after it."""
    scanner = FirstObject(limit_bytes)
    left = iter(pieces)
    try:
        for piece in left:
            if found := scanner.feed(piece):
                return found[0], found[1] + b"".join(left)
    except InvalidParameter as error:
        return f"{error.status} {error}"
    return None


@given(BLANK, OBJECTS, BLANK, st.binary(max_size=20), CUTS)
def test_every_split_gives_the_same_parameters_and_input(
    before: bytes, parameters: bytes, between: bytes, rest: bytes, at: list[int]
):
    rest = rest.lstrip(b" \t\r\n")
    raw = before + parameters + between + rest
    limits = InputLimits(parameters_bytes=len(parameters), parameters_s=5, idle_s=5, total_s=5)

    assert read(split(raw, at), limits) == (parameters, rest)
    assert read(by_byte(raw), limits) == (parameters, rest)
    assert read([raw], limits) == (parameters, rest)


@given(
    st.lists(
        st.sampled_from([b"{", b"}", b"[", b"]", b'"', b"\\", b"a", b" ", b'{"a":"', b"\xc3\xa9"]), max_size=60
    ),
    CUTS,
)
@example([b"{"] * 50, [30])
@example([b"{", b'"a":[', *[b" "] * 40, *[b"["] * 40], [30])
def test_every_split_of_malformed_input_has_the_same_outcome(tokens: list[bytes], at: list[int]):
    raw = b"".join(tokens)

    whole = scanned([raw], 40)

    assert scanned(split(raw, at), 40) == whole
    assert scanned(by_byte(raw), 40) == whole


@pytest.mark.parametrize(
    ("parameters", "rest"),
    [
        ('{"a":"}{"}', "x"),
        (r'{"a":"\""}', '"}'),
        (r'{"a":"\\"}', '{"b":1}'),
        (r'{"a\\\"}":[{"b":"]"}]}', "]"),
        ('{"a":"😀}é"}', "😀"),
        (r'{"a":"\ud83d\ude00\u007d"}', ""),
        ("{}", "[]"),
        ('{"a":{"b":[[],{}]}}', "{}"),
    ],
)
def test_brackets_and_escapes_in_strings_do_not_end_the_parameters(parameters: str, rest: str):
    raw = f" \r\n{parameters}\t {rest}".encode()

    assert read(by_byte(raw)) == (parameters.encode(), rest.encode()) == read([raw])


def test_white_space_inside_and_after_the_input_is_input():
    assert read([b"{}", b"\n", b" \n", b" a b", b" \n"]) == (b"{}", b"a b \n")


@pytest.mark.parametrize("raw", [b"[1]", b' "a"', b"\n1", b"text", b"\xef\xbb\xbf{}", b"}{}", b"\0{}"])
def test_body_that_does_not_begin_with_an_object_is_refused(raw: bytes):
    refused = "400 invalid_parameter: body must begin with a JSON object of parameters"

    assert read([raw]) == read(by_byte(raw)) == refused


@pytest.mark.parametrize("raw", [b"", b" \n", b"{", b'{"a":1', b'{"a":"}', b'{"a":"\\', b'{"a":[}'])
def test_body_that_ends_within_the_parameters_is_refused(raw: bytes):
    refused = "400 invalid_parameter: body must contain a complete JSON object of parameters"

    assert read([raw]) == read(by_byte(raw)) == refused


def test_parameters_at_the_limit_are_accepted():
    parameters = b'{"a":"%b"}' % (b"x" * (LIMITS.parameters_bytes - 8))

    for raw in (parameters, parameters + b"y" * 1000, b" " * 1000 + parameters):
        assert read([raw]) == read(by_byte(raw)) == (parameters, raw.strip()[len(parameters) :])


@pytest.mark.parametrize("behind", [b'"}', b'"}' + b"y" * 1000, b"x" * 1000, b'":' + b"[" * 40])
def test_parameters_over_the_limit_are_too_large_wherever_they_end(behind: bytes):
    raw = b'{"a":"' + b"x" * (LIMITS.parameters_bytes - 7) + behind
    refused = "413 invalid_parameter: the parameters exceed 200 bytes"

    assert read([raw]) == read(by_byte(raw)) == refused


def test_too_large_parameters_are_refused_before_the_body_ends():
    scanner = FirstObject(100)

    assert scanner.feed(b'{"a":"' + b"x" * 94) is None
    with pytest.raises(TooLarge):
        scanner.feed(b"x")


def test_parameters_nested_deeper_than_32_are_refused():
    sound = b'{"a":' * 31 + b"[]" + b"}" * 31
    deep = b'{"a":' * 32 + b"[]" + b"}" * 32

    assert read([sound], LIMITS) == read(by_byte(sound)) == (sound, b"")
    refused = "400 invalid_parameter: body is nested deeper than 32 levels"
    assert read([deep]) == read(by_byte(deep)) == refused


async def test_ends_of_chunks_are_passed_on():
    async def chunks() -> AsyncIterator[Part]:
        for chunk in [
            (b'{"a"', True),
            (b":1} QU", False),
            (b"", True),
            (b"JD", True),
            (b"RA", False),
        ]:
            yield chunk

    reader = reader_of(chunks())

    assert await reader.first_json() == b'{"a":1}'
    assert [piece async for piece in input_of(reader)] == [
        (b"QU", False),
        (b"", True),
        (b"JD", True),
        (b"RA", False),
    ]


async def test_end_of_the_chunk_of_the_parameters_is_passed_on():
    reader = reader_of(source([b"{}", b"ab"]))

    await reader.first_json()

    assert [piece async for piece in input_of(reader)] == [(b"", True), (b"ab", True)]


async def collect(reader: ChunkReader, into: list[bytes]) -> None:
    async for piece, _ in input_of(reader):
        into.append(piece)


async def stalling(*pieces: bytes) -> AsyncIterator[Part]:
    """Yield pieces, then block."""
    for piece in pieces:
        yield piece, True
    await asyncio.Event().wait()


async def trickling(*pieces: bytes, every_s: float) -> AsyncIterator[Part]:
    """Yield pieces, then single bytes without end."""
    for piece in pieces:
        yield piece, True
    while True:
        await asyncio.sleep(every_s)
        yield b"x", True


@pytest.mark.parametrize(
    "incoming", [stalling, partial(stalling, b'{"a'), partial(trickling, b'{"a":"', every_s=0.005)]
)
async def test_parameters_that_do_not_arrive_in_time_are_refused(
    incoming: Callable[[], AsyncIterator[Part]],
):
    reader = reader_of(incoming(), InputLimits(parameters_bytes=10_000, parameters_s=0.03, idle_s=9, total_s=9))

    with pytest.raises(InvalidParameter, match=r"^invalid_parameter: the parameters timed out$"):
        await reader.first_json()


async def test_input_that_stops_is_refused_after_its_last_piece():
    reader = reader_of(stalling(b"{}a", b"b"), InputLimits(200, parameters_s=5, idle_s=0.03, total_s=9))
    await reader.first_json()
    seen: list[bytes] = []

    with pytest.raises(InvalidParameter, match=r"^invalid_parameter: input timed out$"):
        await collect(reader, seen)

    assert seen == [b"a", b"b"]


async def test_endless_input_is_refused():
    reader = reader_of(trickling(b"{}", every_s=0.005), InputLimits(200, parameters_s=5, idle_s=1, total_s=0.5))
    await reader.first_json()
    seen: list[bytes] = []

    with pytest.raises(InvalidParameter, match="input timed out"):
        await collect(reader, seen)

    assert seen.count(b"x") >= 2


async def test_slow_reader_of_the_input_does_not_count_as_a_stalled_client():
    reader = reader_of(source([b"{}a", b"b"]), InputLimits(200, parameters_s=5, idle_s=0.02, total_s=9))
    await reader.first_json()
    seen: list[bytes] = []

    async for piece, _ in input_of(reader):
        await asyncio.sleep(0.03)
        seen.append(piece)

    assert seen == [b"a", b"b"]
