"""A reader that lags makes the writer of a log wait, and no frame of it is dropped."""

import asyncio

from streams.tasks import background
from tests.streams.log_readers import open_log, reading, turns


async def test_writer_waits_exactly_while_a_reader_lags_more_than_the_limit():
    log = open_log(lag_bytes=10)
    async with reading(log) as frames:
        await log.append(b"a")
        assert await anext(frames) == (1, b"a")
        await log.append(b"b" * 9)
        assert log.lag == 10  # Yielded frames count as lag until the reader continues.

        async with background(log.append(b"c")) as writing:
            await turns()
            assert log.lag == 11
            assert not writing.done()
            assert log.last_id == 3  # The event is in the log nevertheless.

            assert await anext(frames) == (3, b"b" * 9 + b"c")
            await turns()
            assert log.lag == 10
            assert writing.done()


async def test_writer_waits_for_the_slowest_reader():
    log = open_log(lag_bytes=10)
    async with reading(log) as quick, reading(log) as slow:
        await log.append(b"a")
        await anext(quick)
        await anext(slow)

        async with background(log.append(b"b" * 11)) as writing:
            await anext(quick)
            async with background(anext(quick)):
                await turns()
                assert not writing.done()

                await anext(slow)
                await turns()
                assert not writing.done()
                async with background(anext(slow)):
                    await turns()
                    assert writing.done()


async def test_without_a_reader_the_writer_never_waits():
    log = open_log(lag_bytes=10)

    async with asyncio.timeout(5):
        for _ in range(100):
            await log.append(b"a" * 100)

    assert log.lag == 0


async def test_reader_that_leaves_wakes_the_writer():
    log = open_log(lag_bytes=10)
    async with reading(log) as frames:
        await log.append(b"a")
        await anext(frames)
        async with background(log.append(b"b" * 20)) as writing:
            await turns()
            assert not writing.done()

            await frames.aclose()

            await writing
    assert log.lag == 0


async def test_all_waiting_writers_are_woken_although_one_was_cancelled():
    log = open_log(lag_bytes=10)
    async with reading(log) as frames:
        await log.append(b"a")
        await anext(frames)
        async with background(log.append(b"b" * 20)) as text, background(log.append(b"c" * 20)) as speech:
            async with background(log.append(b"d" * 20)):
                await turns()
            assert not text.done()
            assert not speech.done()

            await anext(frames)
            async with background(anext(frames)):
                await turns()
                assert text.done()
                assert speech.done()


async def test_last_frame_does_not_wait_and_is_read_by_lagging_readers():
    log = open_log(lag_bytes=10)
    async with reading(log) as frames:
        await log.append(b"a")
        await anext(frames)

        log.finish(b"b" * 50)

        assert await anext(frames) == (2, b"b" * 50)


async def test_attached_reader_loses_nothing_even_if_its_lag_exceeds_the_log():
    log = open_log(keep_bytes=100, lag_bytes=1000)
    seen = b""

    async def write() -> None:
        for number in range(200):
            await log.append(b"%09d," % number)
        log.finish(b"end")

    async with reading(log) as frames, background(write()) as writing:
        async for _, ready in frames:
            await turns()
            seen += ready
        await writing

    assert seen == b"".join(b"%09d," % number for number in range(200)) + b"end"
