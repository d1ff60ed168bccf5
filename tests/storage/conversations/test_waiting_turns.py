"""Turns that wait to be written: cancelled callers, lost connections, time limits and a full queue."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.services import Services
from storage.conversations.turn_rows import NewTurn
from storage.conversations.turns import MAX_BATCH_SIZE, MAX_BATCHES, TurnWriter, open_turn_writer
from storage.postgres.database import open_database
from storage.processes.heartbeats import Heartbeat
from streams.wire.errors import DatabaseUnavailable, StoreUnavailable
from streams.wire.ids import new_id
from tests.running.suspended import suspended
from tests.storage.conversations.written_turns import MANY, closed, end_of, new_turn, opened, reported, value
from tests.waiting import until


@asynccontextmanager
async def held(services: Services, turn: NewTurn) -> AsyncIterator[None]:
    """Lock the conversation of `turn` during the block, so that writers to it wait."""
    async with services.database.transaction() as conn:
        await conn.execute("select from conversations where conversation_id = $1 for update", turn.conversation_id)
        yield


WAIT = "from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


async def until_waiting(services: Services) -> None:
    async def waiting() -> bool:
        return bool(await value(services, f"select count(*) {WAIT}"))

    await until(waiting)


async def test_a_cancelled_open_is_not_written_but_a_cancelled_close_is(
    services: Services, turns: TurnWriter
) -> None:
    gone, stays = new_turn(), new_turn()
    giving_up, opening = turns.open(gone), turns.open(stays)
    giving_up.cancel()
    assert await opening == 1
    assert await value(services, "select count(*) from conversations") == 1
    turns.close(end_of(stays)).cancel()

    async def written() -> bool:
        return await reported(services, stays) == (1, 1, 7, ["complete"])

    await until(written)


async def test_a_caller_that_is_cancelled_during_the_write_does_not_affect_others(
    services: Services, turns: TurnWriter
) -> None:
    first, *others = requested = [new_turn() for _ in range(5)]
    await opened(turns, requested)
    await closed(turns, [end_of(turn) for turn in requested])
    async with held(services, first):
        opening = [turns.open(new_turn(turn.conversation_id)) for turn in requested]
        await until_waiting(services)
        opening[0].cancel()
    assert await asyncio.gather(*opening[1:]) == [2] * len(others)


async def test_a_lost_connection_fails_only_the_current_batch(services: Services, database_url: str) -> None:
    """The connections of this writer have no `lock_timeout`, so that its batch waits until it is ended."""
    requested = [new_turn() for _ in range(5)]
    async with (
        open_database(database_url) as database,
        open_turn_writer(database, services.turns.dead_turns, services.clock) as turns,
    ):
        await opened(turns, requested)
        async with held(services, requested[0]):
            closing = [turns.close(end_of(turn)) for turn in requested]
            await until_waiting(services)
            later = new_turn()
            assert await turns.open(later) == 1
            assert await turns.close(end_of(later))
            assert await value(services, f"select pg_terminate_backend(pid) {WAIT}")
            lost = await asyncio.gather(*closing, return_exceptions=True)
        assert [type(error) for error in lost] == [DatabaseUnavailable] * 5
        assert len(set(map(id, lost))) == 5
        assert [await reported(services, turn) for turn in requested] == [(1, 1, 0, ["running"])] * 5
        assert await value(services, "select count(*) from attempts") == 1
        assert await closed(turns, [end_of(turn) for turn in requested]) == ["complete"] * 5


async def test_no_caller_waits_longer_than_the_limit(services: Services) -> None:
    first = new_turn()
    async with open_turn_writer(services.database, services.turns.dead_turns, services.clock, within_s=1) as turns:
        assert await turns.open(first) == 1
        async with held(services, first), asyncio.timeout(10):
            closing = [
                turns.close(end_of(first)) for _ in range(4)
            ]  # Two are being written, and two wait for them.
            assert {type(e) for e in await asyncio.gather(*closing, return_exceptions=True)} == {
                DatabaseUnavailable
            }
        assert await turns.close(end_of(first))


@asynccontextmanager
async def hanging(services: Services, application: str) -> AsyncIterator[None]:
    """Suspend all database sessions of `application` for the duration of the block."""
    async with services.database.connection() as conn:
        found = await conn.fetch("select pid from pg_stat_activity where application_name = $1", application)
    pids = [pid for (pid,) in found]
    assert pids
    with suspended(*pids):
        yield


@pytest.mark.parametrize("who", ["the same conversation", "another one"])
async def test_a_turn_that_was_opened_after_its_caller_timed_out_is_ended(
    services: Services, database_url: str, who: str
) -> None:
    name = new_id()
    await Heartbeat(services.valkey, services.database, "lives", dict).beat()
    async with (
        open_database(f"{database_url}&application_name={name}", acquire_timeout_s=0.5) as database,
        open_turn_writer(database, services.turns.dead_turns, services.clock, within_s=1) as turns,
    ):
        first = new_turn()
        await turns.open(first)
        await turns.close(end_of(first))
        async with hanging(services, name):
            with pytest.raises(StoreUnavailable):
                await turns.open(new_turn(first.conversation_id, process="lives"))
            assert await reported(services, first) == (1, 1, 7, ["complete"])

        async def is_opened() -> bool:
            return (await reported(services, first))[3] == ["complete", "running"]

        async def is_ended() -> bool:
            return (await reported(services, first))[3] == ["complete", "incomplete"]

        await until(is_opened)
        if who == "another one":
            assert await turns.open(new_turn()) == 1
            await until(is_ended)
        assert await turns.open(new_turn(first.conversation_id, process="lives")) == 3
        assert await reported(services, first) == (3, 3, 7, ["complete", "incomplete", "running"])


async def test_waiting_turns_are_written_at_the_end_of_the_block(services: Services) -> None:
    requested = [new_turn() for _ in range(MANY)]
    async with open_turn_writer(services.database, services.turns.dead_turns, services.clock) as turns:
        await opened(turns, requested)
        closing = [turns.close(end_of(turn)) for turn in requested]
    assert [future.result() for future in closing] == ["complete"] * MANY
    with pytest.raises(StoreUnavailable):
        await turns.open(new_turn())


async def test_callers_that_still_wait_after_the_block_get_an_error(services: Services) -> None:
    first = new_turn()
    await services.turns.open(first)
    async with held(services, first):
        async with open_turn_writer(
            services.database, services.turns.dead_turns, services.clock, leave_s=0.2
        ) as turns:
            closing = [turns.close(end_of(first)) for _ in range(4)]
            await until_waiting(services)
        assert {type(future.exception()) for future in closing} == {DatabaseUnavailable}


async def test_turns_that_exceed_the_queue_are_refused_immediately(services: Services, turns: TurnWriter) -> None:
    waiting = [turns.open(new_turn()) for _ in range(MAX_BATCHES * MAX_BATCH_SIZE)]
    refused = turns.open(new_turn())
    assert isinstance(refused.exception(), StoreUnavailable)
    for one in waiting:
        one.cancel()

    async def taken() -> bool:
        return await opened(turns, [new_turn()]) == [1]

    await until(taken)
    assert await value(services, "select count(*) from conversations") == 1
