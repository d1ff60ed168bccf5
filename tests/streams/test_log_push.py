"""What a follower of a log is given: pushed frames, and its backlog in pieces."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import pytest

from streams.log import PIECE_BYTES, EventLog, Ready
from streams.tasks import background

MANY = 1 << 30


def open_log(*, keep_bytes: int = MANY, lag_bytes: int = MANY) -> EventLog:
    return EventLog(keep_bytes=keep_bytes, lag_bytes=lag_bytes)


async def turns(count: int = 6) -> None:
    """Let every other task run until it waits."""
    for _ in range(count):
        await asyncio.sleep(0)


@asynccontextmanager
async def reading(
    log: EventLog, after: int = 0, *, idle_s: float = 60
) -> AsyncIterator[AsyncGenerator[tuple[int, bytes]]]:
    async with aclosing(_pairs(log.follow(after, idle_s=idle_s))) as pairs:
        yield pairs


async def _pairs(following: AsyncGenerator[Ready]) -> AsyncGenerator[tuple[int, bytes]]:
    async with aclosing(following) as frames:
        async for ready in frames:
            yield ready.last_id, ready.frames


async def take_all(log: EventLog, after: int, into: list[tuple[int, bytes]]) -> None:
    async with reading(log, after) as frames:
        async for ready in frames:
            into.append(ready)  # noqa: PERF401 - as they come


@asynccontextmanager
async def pushed_to(
    log: EventLog, push: Callable[[bytes], bool]
) -> AsyncIterator[tuple[AsyncGenerator[Ready], asyncio.Task[Ready]]]:
    """A follower that waits for what `push` does not take."""
    async with (
        aclosing(log.follow(0, idle_s=60, push=push)) as following,
        background(anext(following)) as waiting,
    ):
        await turns()
        yield following, waiting


async def test_what_comes_while_the_follower_waits_is_pushed_at_once():
    log, seen = open_log(), []
    async with pushed_to(log, lambda frames: seen.append(frames) is None) as (following, waiting):
        log.put(b"a")
        log.put(b"b")
        assert seen == [b"a", b"b"]
        await turns()
        assert not waiting.done()
        log.finish(b"c")
        assert await waiting == (3, b"c", True)
        with pytest.raises(StopAsyncIteration):
            await anext(following)


async def test_what_is_not_taken_is_given_to_the_follower():
    log, room = open_log(), [True, False]
    async with pushed_to(log, lambda _: room.pop(0)) as (_, waiting):
        log.put(b"a")
        await turns()
        log.put(b"b")
        log.put(b"c")
        assert await waiting == (3, b"bc", False)


async def test_what_was_pushed_counts_as_read():
    log, taking = open_log(lag_bytes=10), True
    async with pushed_to(log, lambda _: taking) as (_, waiting):
        assert log.put(b"a" * 20)
        assert log.lag == 0
        taking = False
        assert not log.put(b"b" * 20)
        await waiting
        assert log.lag == 20


async def test_silence_is_told_though_all_before_it_was_pushed():
    log, loop = open_log(), asyncio.get_running_loop()
    pushed: list[float] = []
    async with (
        aclosing(log.follow(0, idle_s=0.06, push=lambda _: pushed.append(loop.time()) is None)) as following,
        background(anext(following)) as waiting,
    ):
        await asyncio.sleep(0.04)
        log.put(b"a")
        assert await waiting == (1, b"", False)
        assert loop.time() - pushed[0] >= 0.055


async def test_backlog_is_given_in_pieces_and_the_last_of_them_ends_the_stream():
    log = open_log()
    for number in range(5_000):
        log.put(b"%0100d" % number)
    log.finish(b"end")

    async with aclosing(log.follow(0)) as following:
        pieces = [ready async for ready in following]

    assert b"".join(piece.frames for piece in pieces) == b"".join(b"%0100d" % n for n in range(5_000)) + b"end"
    assert max(len(piece.frames) for piece in pieces) <= PIECE_BYTES
    assert len(pieces) <= 5_000 * 100 / PIECE_BYTES + 2
    assert [piece.whole for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert pieces[-1].last_id == log.last_id


async def test_frame_larger_than_a_piece_is_given_alone_and_shared():
    log, large = open_log(), b"b" * 3 * PIECE_BYTES
    for frame in (b"a", large, b"c"):
        log.put(frame)
    log.finish(b"d")

    async with aclosing(log.follow(0)) as following:
        pieces = [ready async for ready in following]

    assert [(piece.last_id, piece.whole) for piece in pieces] == [(1, False), (2, False), (4, True)]
    assert pieces[1].frames is large


async def test_frames_that_an_attached_reader_has_not_read_are_not_dropped():
    log = open_log(keep_bytes=8 * PIECE_BYTES, lag_bytes=4 * PIECE_BYTES)
    frames = [b"%01024d" % number for number in range(8 * PIECE_BYTES // 1024)]
    for frame in frames:
        log.put(frame)

    async with reading(log) as reader:
        _, seen = await anext(reader)
        more = [b"m" * 1024] * 200  # of a writer that does not wait
        for frame in more:
            log.put(frame)
        log.finish(b"end")
        seen += b"".join([piece async for _, piece in reader])

    assert seen == b"".join([*frames, *more, b"end"])
