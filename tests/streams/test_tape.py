"""A stream's input is read from its start by every attempt, and live after that."""

import asyncio

import pytest

from streams.tape import Tape
from streams.tasks import background
from streams.wire.errors import InvalidParameter


async def turns(count: int = 5) -> None:
    """Let every other task run until it waits."""
    for _ in range(count):
        await asyncio.sleep(0)


async def collect(tape: Tape, into: list[bytes]) -> None:
    async for piece in tape.read():
        into.append(piece)  # noqa: PERF401 - as they come


async def test_every_reader_hears_all_from_the_start():
    tape = Tape()
    early: list[bytes] = []
    late: list[bytes] = []
    async with background(collect(tape, early)) as first:
        tape.write(b"a")
        await turns()
        tape.write(b"b")
        tape.write(b"c")
        await turns()
        async with background(collect(tape, late)) as second:
            await turns()
            tape.write(b"d")
            tape.end()
            await first
            await second

    assert early == [b"a", b"bc", b"d"]
    assert late == [b"abc", b"d"]
    assert len(tape) == 4
    assert [piece async for piece in tape.read()] == [b"abcd"]


async def test_whole_waits_for_the_end():
    tape = Tape()
    async with background(tape.whole()) as whole:
        tape.write(b"ab")
        await turns()
        assert not whole.done()
        assert not tape.complete

        tape.write(b"c")
        tape.end()

        assert await whole == b"abc"
    assert tape.complete


async def test_input_without_bytes_ends_too():
    tape = Tape()
    tape.end()

    assert await tape.whole() == b""
    assert [piece async for piece in tape.read()] == []
    assert await tape.head(9) == b""


async def test_head_waits_for_its_size_alone():
    tape = Tape()
    async with background(tape.head(3)) as head:
        tape.write(b"ab")
        await turns()
        assert not head.done()

        tape.write(b"cd")

        assert await head == b"abc"
    tape.end()
    assert await tape.head(9) == b"abcd"


async def test_fault_of_the_input_is_met_behind_what_came_before():
    tape = Tape()
    seen: list[bytes] = []

    async def break_off() -> None:
        tape.write(b"ab")
        await turns()
        tape.fail(InvalidParameter("input timed out"))

    waited = await asyncio.gather(tape.whole(), tape.head(9), break_off(), return_exceptions=True)

    assert [str(error) for error in waited[:2]] == ["invalid_parameter: input timed out"] * 2
    with pytest.raises(InvalidParameter, match="input timed out"):
        await collect(tape, seen)
    assert seen == [b"ab"]
    assert await tape.head(2) == b"ab"
    assert not tape.complete


async def test_fault_behind_the_end_changes_nothing():
    tape = Tape()
    tape.write(b"a")
    tape.end()
    tape.fail(InvalidParameter("too late"))

    assert tape.complete
    assert await tape.whole() == b"a"


async def test_cancelled_reader_leaves_the_others_reading():
    tape = Tape()
    left: list[bytes] = []
    stayed: list[bytes] = []
    async with background(collect(tape, stayed)) as staying:
        async with background(collect(tape, left)):
            tape.write(b"a")
            await turns()
        tape.write(b"b")
        tape.end()
        await staying

    assert (left, stayed) == ([b"a"], [b"a", b"b"])
