"""Simultaneous turns are written in one transaction, with the same result as one by one."""

import asyncio

from app.services import Services
from storage.conversations.turns import MAX_BATCH_SIZE, TurnWriter
from storage.errors import TurnRunning
from storage.processes.heartbeats import Heartbeat
from streams.wire.errors import ItemNotFound, StoreError, StoreUnavailable
from tests.storage.conversations.written_turns import MANY, closed, end_of, new_turn, opened, reported, value


async def transactions(services: Services) -> int:
    """Return the number of transactions that wrote the existing records."""
    count: int = await value(services, "select count(distinct xmin::text) from conversation_records")
    return count


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
