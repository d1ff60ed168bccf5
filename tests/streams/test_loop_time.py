"""Tasks that process large pieces at the same time let the event loop run other tasks in between."""

import asyncio
import time

from streams.loop_time import wait_for_loop_time
from streams.tasks import background

PIECE_S = 0.003
TASKS = 20


async def process_piece(iterations: list[int], counter: list[int]) -> None:
    await wait_for_loop_time()
    iterations.append(counter[0])
    until = time.monotonic() + PIECE_S
    while time.monotonic() < until:
        pass


async def count_iterations(counter: list[int]) -> None:
    while True:
        counter[0] += 1
        await asyncio.sleep(0)


async def test_large_pieces_of_many_tasks_are_processed_in_many_iterations() -> None:
    iterations: list[int] = []
    counter = [0]
    async with background(count_iterations(counter)):
        await asyncio.gather(*(process_piece(iterations, counter) for _ in range(TASKS)))
    assert len(iterations) == TASKS
    assert len(set(iterations)) == TASKS


async def test_a_single_task_does_not_wait() -> None:
    counter = [0]
    async with background(count_iterations(counter)):
        await asyncio.sleep(0)
        before = counter[0]
        await wait_for_loop_time()
        assert counter[0] == before
