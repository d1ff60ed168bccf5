"""Simultaneous turns are written in one transaction, with the same result as one by one."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from app.services import Services
from storage.attempts import AttemptRow
from storage.conversations import find
from storage.errors import TurnRunning
from storage.heartbeats import Heartbeat
from storage.postgres import open_database
from storage.turn_rows import Answered, ClosedTurn, NewTurn
from storage.turns import MAX_BATCH_SIZE, MAX_BATCHES, TurnWriter, open_turn_writer
from streams.wire.errors import DatabaseUnavailable, ItemNotFound, StoreError, StoreUnavailable
from streams.wire.ids import new_id
from tests.waiting import until

MANY = 60
ATTEMPT = AttemptRow(
    number=1,
    stage="llm",
    strategy="one",
    vendor="openai",
    outcome="won",
    message="",
    first_output_ms=7,
    elapsed_ms=9,
    input_unit=3,
    output_unit=4,
    price="0.25",
    usage_source="vendor",
)


@pytest.fixture
def turns(services: Services) -> TurnWriter:
    return services.turns


def new_turn(
    conversation_id: str = "",
    *,
    uid: str = "u",
    words: str = "Hello?",
    process: str = "",
    max_stream_s: float = 600,
) -> NewTurn:
    return NewTurn(
        app_id="default",
        conversation_id=conversation_id or new_id(),
        uid=uid,
        content=[{"role": "user", "content": [{"type": "text", "text": words}]}],
        stream_id=new_id(),
        max_stream_s=max_stream_s,
        process=process,
    )


def end_of(turn: NewTurn, record_id: int = 1, *, words: str = "Fine.") -> ClosedTurn:
    message = {"role": "assistant", "content": [{"type": "text", "text": words}]}
    answered = Answered("complete", "one", message, 3, 4, tokens_estimated=False)
    return ClosedTurn("default", turn.uid, turn.conversation_id, record_id, turn.stream_id, answered, [ATTEMPT])


async def opened(turns: TurnWriter, requested: Sequence[NewTurn]) -> list[Any]:
    return await asyncio.gather(*[turns.open(turn) for turn in requested], return_exceptions=True)


async def closed(turns: TurnWriter, requested: Sequence[ClosedTurn]) -> list[Any]:
    return await asyncio.gather(*[turns.close(turn) for turn in requested], return_exceptions=True)


async def value(services: Services, statement: str, *args: Any) -> Any:
    async with services.database.connection() as conn:
        return await conn.fetchval(statement, *args)


async def transactions(services: Services) -> int:
    """Return the number of transactions that wrote the existing records."""
    count: int = await value(services, "select count(distinct xmin::text) from conversation_records")
    return count


async def reported(services: Services, turn: NewTurn) -> tuple[int, int, int, list[str]]:
    """Return the counters of a conversation, and the statuses of its records."""
    async with services.database.connection() as conn:
        found = await find(conn, turn.app_id, turn.uid, conversation_id=turn.conversation_id)
        assert found is not None
        rows = await conn.fetch(
            "select status from conversation_records where conversation_id = $1 order by record_id",
            turn.conversation_id,
        )
    return found.last_record_id, found.record_count, found.record_token, [status for (status,) in rows]


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


async def test_a_single_turn_is_written_immediately(services: Services, turns: TurnWriter) -> None:
    async with asyncio.timeout(5):
        for number in range(1, 6):
            assert await turns.open(new_turn()) == 1
            assert await transactions(services) == number


async def test_simultaneous_turns_are_written_in_one_transaction(services: Services, turns: TurnWriter) -> None:
    requested = [new_turn() for _ in range(MANY)]
    assert await opened(turns, requested) == [1] * MANY
    assert await transactions(services) == 1
    assert await closed(turns, [end_of(turn) for turn in requested]) == ["complete"] * MANY
    assert await transactions(services) == 1
    assert [await reported(services, turn) for turn in requested] == [(1, 1, 7, ["complete"])] * MANY
    assert await value(services, "select count(*) from attempts") == MANY
    assert await opened(turns, [new_turn(turn.conversation_id) for turn in requested]) == [2] * MANY


async def test_turns_that_exceed_one_batch_are_all_written(services: Services, turns: TurnWriter) -> None:
    requested = [new_turn() for _ in range(3 * MAX_BATCH_SIZE + 1)]
    assert await opened(turns, requested) == [1] * len(requested)
    assert await transactions(services) == 4


async def test_a_refused_turn_does_not_affect_the_others_of_its_batch(
    services: Services, turns: TurnWriter
) -> None:
    other, running = new_turn(uid="somebody else"), new_turn(process="lives")
    await opened(turns, [other, running])
    assert await turns.close(end_of(other))
    await Heartbeat(services.valkey, services.database, "lives", dict).beat()
    good = [new_turn() for _ in range(MANY)]
    *firsts, stolen, second = await opened(
        turns, [*good, new_turn(other.conversation_id), new_turn(running.conversation_id)]
    )
    assert firsts == [1] * MANY
    assert isinstance(stolen, ItemNotFound)
    assert isinstance(second, TurnRunning)
    assert [await reported(services, turn) for turn in good] == [(1, 1, 0, ["running"])] * MANY
    assert await reported(services, other) == (1, 1, 7, ["complete"])
    assert await reported(services, running) == (1, 1, 0, ["running"])


async def test_only_the_turn_that_the_database_refuses_fails(services: Services, turns: TurnWriter) -> None:
    good = [new_turn() for _ in range(MANY)]
    *firsts, bad = await opened(turns, [*good, new_turn(words="\0")])
    assert firsts == [1] * MANY
    assert isinstance(bad, StoreError)
    assert not isinstance(bad, StoreUnavailable)
    *ends, bad = await closed(turns, [*map(end_of, good[1:]), end_of(good[0], words="\0")])
    assert ends == ["complete"] * (MANY - 1)
    assert isinstance(bad, StoreError)
    assert await reported(services, good[0]) == (1, 1, 0, ["running"])
    assert await value(services, "select count(*) from attempts") == MANY - 1


async def test_turns_of_dead_processes_and_expired_turns_are_ended(services: Services, turns: TurnWriter) -> None:
    left = [new_turn(process="dead") for _ in range(3)]
    long_ago = new_turn(process="lives")
    await opened(turns, [*left, long_ago])
    await Heartbeat(services.valkey, services.database, "lives", dict).beat()
    services.heartbeat._void_after_s = 0
    await asyncio.sleep(0.01)
    requested = [new_turn(turn.conversation_id) for turn in left] + [
        new_turn(long_ago.conversation_id, max_stream_s=0.001),
        new_turn(),
    ]
    assert await opened(turns, requested) == [2, 2, 2, 2, 1]
    assert await reported(services, left[0]) == (2, 2, 0, ["incomplete", "running"])
    assert await reported(services, long_ago) == (2, 2, 0, ["incomplete", "running"])


async def test_only_one_of_two_simultaneous_turns_of_a_conversation_is_opened(
    services: Services, turns: TurnWriter
) -> None:
    first = new_turn()
    outcomes = await opened(turns, [first, new_turn(first.conversation_id)])
    assert 1 in outcomes
    assert {type(outcome) for outcome in outcomes} == {int, TurnRunning}
    assert await reported(services, first) == (1, 1, 0, ["running"])


async def test_an_end_that_is_retried_is_written_once(services: Services, turns: TurnWriter) -> None:
    requested = [new_turn() for _ in range(MANY)]
    await opened(turns, requested)
    ends = [end_of(turn) for turn in requested]
    twice = await closed(turns, [*ends, *ends])
    assert [{first, second} for first, second in zip(twice[:MANY], twice[MANY:], strict=True)] == [
        {"complete", None}
    ] * MANY
    assert await closed(turns, ends) == [None] * MANY
    assert [await reported(services, turn) for turn in requested] == [(1, 1, 7, ["complete"])] * MANY
    assert await value(services, "select sum(jsonb_array_length(content)) from conversation_records") == 2 * MANY
    assert await value(services, "select count(*) from attempts") == MANY


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


async def test_a_lost_connection_fails_only_the_current_batch(services: Services, turns: TurnWriter) -> None:
    requested = [new_turn() for _ in range(5)]
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
    async with open_turn_writer(services.database, services.heartbeat, services.clock, within_s=0.3) as turns:
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
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("who", ["the same conversation", "another one"])
async def test_a_turn_that_was_opened_after_its_caller_timed_out_is_ended(
    services: Services, database_url: str, who: str
) -> None:
    name = new_id()
    await Heartbeat(services.valkey, services.database, "lives", dict).beat()
    async with (
        open_database(f"{database_url}&application_name={name}", acquire_timeout_s=0.5) as database,
        open_turn_writer(database, services.heartbeat, services.clock, within_s=0.3) as turns,
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
    async with open_turn_writer(services.database, services.heartbeat, services.clock) as turns:
        await opened(turns, requested)
        closing = [turns.close(end_of(turn)) for turn in requested]
    assert [future.result() for future in closing] == ["complete"] * MANY
    with pytest.raises(StoreUnavailable):
        await turns.open(new_turn())


async def test_callers_that_still_wait_after_the_block_get_an_error(services: Services) -> None:
    first = new_turn()
    await services.turns.open(first)
    async with held(services, first):
        async with open_turn_writer(services.database, services.heartbeat, services.clock, leave_s=0.2) as turns:
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
