"""A stream's events keep their order and ids for every reader, and silence is reported."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.log import EventLog, Gone, Ready
from streams.tasks import background
from tests.streams.log_readers import open_log, reading, turns


async def take_all(log: EventLog, after: int, into: list[tuple[int, bytes]]) -> None:
    async with reading(log, after) as frames:
        async for ready in frames:
            into.append(ready)  # noqa: PERF401 - as they come


async def test_frames_get_ids_from_one_and_are_joined():
    log = open_log()
    async with reading(log) as frames:
        await log.append(b"a")
        assert log.last_id == 1
        assert await anext(frames) == (1, b"a")

        await log.append(b"b")
        await log.append(b"c")
        assert await anext(frames) == (3, b"bc")

        log.finish(b"d")
        assert await anext(frames) == (4, b"d")
        with pytest.raises(StopAsyncIteration):
            await anext(frames)
    assert log.closed
    assert log.last_id == log.size_bytes == 4


async def test_a_reader_begins_after_its_position():
    log = open_log()
    for frame in (b"a", b"b", b"c"):
        await log.append(frame)
    log.finish(b"d")

    seen: list[list[tuple[int, bytes]]] = [[] for _ in range(5)]
    for after, into in enumerate(seen):
        await take_all(log, after, into)

    assert seen == [[(4, b"abcd")], [(4, b"bcd")], [(4, b"cd")], [(4, b"d")], []]


async def test_waiting_reader_is_woken_by_the_next_frame():
    log = open_log()
    seen: list[tuple[int, bytes]] = []
    async with background(take_all(log, 0, seen)) as task:
        await turns()
        await log.append(b"a")
        await turns()
        assert seen == [(1, b"a")]

        log.finish(b"b")
        await task
    assert seen == [(1, b"a"), (2, b"b")]


async def test_the_end_of_the_log_ends_an_up_to_date_reader():
    log = open_log()
    log.finish(b"a")
    seen: list[tuple[int, bytes]] = []

    await take_all(log, 1, seen)

    assert seen == []


@given(st.lists(st.sampled_from([b"w", b"0", b"1"]), max_size=30))
def test_all_readers_get_the_same_bytes_at_any_time(steps: list[bytes]):
    async def play() -> list[bytes]:
        log = open_log()
        seen = [b"", b""]
        async with reading(log) as first, reading(log) as second:
            for step in steps:
                if step == b"w":
                    await log.append(b"%d," % (log.last_id + 1))
                elif seen[int(step)].count(b",") < log.last_id:
                    last_id, frames = await anext((first, second)[int(step)])
                    seen[int(step)] += frames
                    assert last_id == seen[int(step)].count(b",") == log.last_id
            log.finish(b"%d," % (log.last_id + 1))
            for number, reader in enumerate((first, second)):
                async for _, frames in reader:
                    seen[number] += frames
        return seen

    expected = b"".join(b"%d," % (number + 1) for number in range(steps.count(b"w") + 1))
    assert asyncio.run(play()) == [expected, expected]


async def test_oldest_frames_are_dropped_and_a_reader_that_needs_them_gets_an_error():
    log = open_log(keep_bytes=100)
    for number in range(30):
        await log.append(b"%010d" % number)
    log.finish(b"end")

    oldest = log.last_id - 5
    seen: list[tuple[int, bytes]] = []
    await take_all(log, oldest, seen)

    assert seen == [(31, b"".join(b"%010d" % number for number in range(oldest, 30)) + b"end")]
    for dropped in (0, 1, log.last_id - 11):
        with pytest.raises(Gone, match=f"^item_not_found: events after {dropped} are no longer kept$") as gone:
            await take_all(log, dropped, [])
        assert gone.value.status == 410


async def test_a_frame_larger_than_the_log_is_the_only_one_kept():
    log = open_log(keep_bytes=10)
    await log.append(b"a" * 5)
    await log.append(b"b" * 50)
    seen: list[tuple[int, bytes]] = []

    log.finish(b"c")
    await take_all(log, 2, seen)

    assert seen == [(3, b"c")]
    with pytest.raises(Gone):
        await take_all(log, 0, seen)


async def test_negative_position_is_refused():
    log = open_log()
    log.finish(b"a")

    with pytest.raises(Gone):
        await take_all(log, -1, [])


async def test_silence_is_reported_once_per_interval():
    log = open_log()
    loop = asyncio.get_running_loop()
    await log.append(b"a")
    async with reading(log, idle_s=0.03) as frames:
        assert await anext(frames) == (1, b"a")
        begun = loop.time()

        assert await anext(frames) == (1, b"")
        assert await anext(frames) == (1, b"")

        assert loop.time() - begun >= 0.055
        await log.append(b"b")
        assert await anext(frames) == (2, b"b")


async def test_frames_restart_the_interval_of_silence():
    log = open_log()
    loop = asyncio.get_running_loop()
    async with reading(log, idle_s=0.4) as frames:
        async with background(anext(frames)) as waiting:
            await asyncio.sleep(0.1)
            last = loop.time()
            await log.append(b"a")
            assert await waiting == (1, b"a")

        assert await anext(frames) == (1, b"")

        assert loop.time() - last >= 0.395


@asynccontextmanager
async def pushed_to(
    log: EventLog, push: Callable[[bytes], bool]
) -> AsyncIterator[tuple[AsyncGenerator[Ready], asyncio.Task[Ready]]]:
    """A follower that waits for frames that `push` does not accept."""
    async with (
        aclosing(log.follow(0, idle_s=60, push=push)) as following,
        background(anext(following)) as waiting,
    ):
        await turns()
        yield following, waiting


async def test_frame_for_a_waiting_follower_is_pushed_immediately():
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


async def test_frame_that_is_not_accepted_is_yielded_to_the_follower():
    log, room = open_log(), [True, False]
    async with pushed_to(log, lambda _: room.pop(0)) as (_, waiting):
        log.put(b"a")
        await turns()
        log.put(b"b")
        log.put(b"c")
        assert await waiting == (3, b"bc", False)


async def test_pushed_frames_count_as_read():
    log, taking = open_log(lag_bytes=10), True
    async with pushed_to(log, lambda _: taking) as (_, waiting):
        assert log.put(b"a" * 20)
        assert log.lag == 0
        taking = False
        assert not log.put(b"b" * 20)
        await waiting
        assert log.lag == 20


async def test_silence_is_reported_even_after_pushed_frames():
    log, loop = open_log(), asyncio.get_running_loop()
    pushed: list[float] = []
    async with (
        aclosing(log.follow(0, idle_s=0.4, push=lambda _: pushed.append(loop.time()) is None)) as following,
        background(anext(following)) as waiting,
    ):
        await asyncio.sleep(0.1)
        log.put(b"a")
        assert await waiting == (1, b"", False)
        assert loop.time() - pushed[0] >= 0.395
