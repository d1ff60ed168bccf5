"""Every attempt reads the input from its start, and then as it arrives."""

import asyncio

import pytest

from streams.input_buffer import InputBuffer
from streams.tasks import background
from streams.wire.errors import InvalidParameter


async def turns(count: int = 5) -> None:
    """Let every other task run until it waits."""
    for _ in range(count):
        await asyncio.sleep(0)


async def collect(buffer: InputBuffer, into: list[bytes]) -> None:
    async for piece in buffer.read():
        into.append(piece)  # noqa: PERF401 - as they come


async def test_every_reader_reads_from_the_start():
    buffer = InputBuffer()
    early: list[bytes] = []
    late: list[bytes] = []
    async with background(collect(buffer, early)) as first:
        buffer.write(b"a")
        await turns()
        buffer.write(b"b")
        buffer.write(b"c")
        await turns()
        async with background(collect(buffer, late)) as second:
            await turns()
            buffer.write(b"d")
            buffer.end()
            await first
            await second

    assert early == [b"a", b"bc", b"d"]
    assert late == [b"abc", b"d"]
    assert len(buffer) == 4
    assert [piece async for piece in buffer.read()] == [b"abcd"]


async def test_whole_waits_until_the_input_is_complete():
    buffer = InputBuffer()
    async with background(buffer.whole()) as whole:
        buffer.write(b"ab")
        await turns()
        assert not whole.done()
        assert not buffer.complete

        buffer.write(b"c")
        buffer.end()

        assert await whole == b"abc"
    assert buffer.complete


async def test_input_without_bytes_ends_too():
    buffer = InputBuffer()
    buffer.end()

    assert await buffer.whole() == b""
    assert [piece async for piece in buffer.read()] == []
    assert await buffer.head(9) == b""


async def test_head_waits_only_for_its_size():
    buffer = InputBuffer()
    async with background(buffer.head(3)) as head:
        buffer.write(b"ab")
        await turns()
        assert not head.done()

        buffer.write(b"cd")

        assert await head == b"abc"
    buffer.end()
    assert await buffer.head(9) == b"abcd"


async def test_input_errors_are_raised_after_the_preceding_input():
    buffer = InputBuffer()
    seen: list[bytes] = []

    async def break_off() -> None:
        buffer.write(b"ab")
        await turns()
        buffer.fail(InvalidParameter("input timed out"))

    waited = await asyncio.gather(buffer.whole(), buffer.head(9), break_off(), return_exceptions=True)

    assert [str(error) for error in waited[:2]] == ["invalid_parameter: input timed out"] * 2
    with pytest.raises(InvalidParameter, match="input timed out"):
        await collect(buffer, seen)
    assert seen == [b"ab"]
    assert await buffer.head(2) == b"ab"
    assert not buffer.complete


async def test_errors_after_the_end_are_ignored():
    buffer = InputBuffer()
    buffer.write(b"a")
    buffer.end()
    buffer.fail(InvalidParameter("too late"))

    assert buffer.complete
    assert await buffer.whole() == b"a"


async def test_cancelled_reader_leaves_the_others_reading():
    buffer = InputBuffer()
    left: list[bytes] = []
    stayed: list[bytes] = []
    async with background(collect(buffer, stayed)) as staying:
        async with background(collect(buffer, left)):
            buffer.write(b"a")
            await turns()
        buffer.write(b"b")
        buffer.end()
        await staying

    assert (left, stayed) == ([b"a"], [b"a", b"b"])
