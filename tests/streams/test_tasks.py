"""A background task lives as long as its block."""

import asyncio
from collections.abc import Callable

import pytest

from streams.tasks import background, unless_failed


class Fault(Exception):
    pass


class Recorder:
    """A coroutine that records what happens to it."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.go = asyncio.Event()
        self.clean_up = asyncio.Event()
        self.clean_up.set()
        self.story: list[str] = []

    async def run(self) -> str:
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.story.append("cancelled")
            self.cancelled.set()
            await self.clean_up.wait()
            self.story.append("cleaned up")
            raise
        self.story.append("went well")
        return "result"


async def test_a_task_runs_concurrently_and_is_awaited_by_its_block():
    recorder = Recorder()
    async with background(recorder.run()) as task:
        await recorder.begun.wait()
        recorder.go.set()
        assert await task == "result"

    assert recorder.story == ["went well"]


async def test_task_is_cancelled_and_awaited_when_its_block_is_left():
    recorder = Recorder()
    async with background(recorder.run()) as task:
        await recorder.begun.wait()

    assert task.cancelled()
    assert recorder.story == ["cancelled", "cleaned up"]


async def test_an_error_of_the_block_is_raised_unwrapped():
    recorder = Recorder()

    async def block() -> None:
        async with background(recorder.run()):
            await recorder.begun.wait()
            raise Fault("of the block")

    with pytest.raises(Fault, match="of the block"):
        await block()

    assert recorder.story == ["cancelled", "cleaned up"]


async def failing() -> None:
    raise Fault("of the task")


async def test_fault_of_the_task_is_raised_at_the_end_of_a_good_block():
    async def block() -> None:
        async with background(failing()) as task:
            await asyncio.wait([task])

    with pytest.raises(Fault, match="of the task"):
        await block()


async def test_the_error_of_the_block_has_precedence_over_that_of_the_task():
    async def block() -> None:
        async with background(failing()) as task:
            await asyncio.wait([task])
            raise Fault("of the block")

    with pytest.raises(Fault, match="of the block"):
        await block()


async def test_errors_of_a_task_are_raised_where_it_is_awaited():
    went_on = False

    async def block() -> None:
        nonlocal went_on
        async with background(failing()) as task:
            await task
            went_on = True

    with pytest.raises(Fault, match="of the task"):
        await block()
    assert not went_on


async def in_block(recorder: Recorder) -> None:
    async with background(recorder.run()):
        await recorder.begun.wait()
        await asyncio.Event().wait()


async def leaving_block(recorder: Recorder) -> None:
    async with background(recorder.run()):
        await recorder.begun.wait()


@pytest.mark.parametrize("block", [in_block, leaving_block])
async def test_cancelling_again_does_not_leave_a_task_that_cleans_up(block: Callable[[Recorder], object]):
    recorder = Recorder()
    recorder.clean_up.clear()
    async with background(block(recorder)) as outer:
        await recorder.begun.wait()
        if block is in_block:
            outer.cancel()
        await recorder.cancelled.wait()
        outer.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert not outer.done()

        recorder.clean_up.set()
        await asyncio.wait([outer])

        assert outer.cancelled()
        assert recorder.story == ["cancelled", "cleaned up"]


async def fails(after: asyncio.Event) -> None:
    await after.wait()
    raise Fault


async def test_the_block_is_cancelled_when_its_task_fails():
    failing, recorder = asyncio.Event(), Recorder()
    failing.set()

    async def both() -> None:
        async with background(fails(failing)) as task:
            with unless_failed(task):
                await recorder.run()

    with pytest.raises(Fault):
        await both()
    assert recorder.story == ["cancelled", "cleaned up"]
    current = asyncio.current_task()
    assert current is not None
    assert current.cancelling() == 0


async def test_a_later_failure_of_the_task_does_not_affect_a_finished_block():
    failing, recorder = asyncio.Event(), Recorder()
    recorder.go.set()
    results = []

    async def both() -> None:
        async with background(fails(failing)) as task:
            with unless_failed(task):
                results.append(await recorder.run())
            failing.set()
            await asyncio.wait([task])
            await asyncio.sleep(0)
            results.append("went on")

    with pytest.raises(Fault):
        await both()
    assert results == ["result", "went on"]


async def test_cancellation_from_outside_wins_over_a_failing_task():
    failing, recorder = asyncio.Event(), Recorder()

    async def both() -> None:
        async with background(fails(failing)) as task:
            with unless_failed(task):
                await recorder.run()

    async with background(both()) as running:
        await recorder.begun.wait()
        failing.set()
        running.cancel()
        await asyncio.wait([running])
    assert running.cancelled()
    assert recorder.story == ["cancelled", "cleaned up"]


async def test_a_coroutine_that_suppresses_its_cancellation_leaves_none_behind():
    failing = asyncio.Event()

    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done"
        return "never"

    failing.set()

    async def both() -> None:
        async with background(fails(failing)) as task:
            with unless_failed(task):
                assert await stubborn() == "done"
            await asyncio.sleep(0)  # A remaining cancellation would be raised here.

    with pytest.raises(Fault):
        await both()


async def test_an_error_together_with_the_end_has_no_later_effect():
    failing = asyncio.Event()
    story = []

    async def both() -> None:
        async with background(fails(failing)) as task:
            failing.set()
            await asyncio.wait([task])

            with unless_failed(task):
                story.append("result")
            for _ in range(3):
                await asyncio.sleep(0)
            story.append("went on")

    with pytest.raises(Fault):
        await both()
    assert story == ["result", "went on"]
