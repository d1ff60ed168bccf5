"""Random calls, faults of the host and deaths of processes: every prediction ends, and the quota equals a model."""

import random
from collections import Counter

import pytest

from storage.assets.differences import find_differences
from tests.app.predictions.hosts import Studio
from tests.sampling import sampled
from vendors.sandbox.faults import Fault, key_of

FAULTS = (
    Fault.RATE_LIMITED,
    Fault.SERVER_ERROR,
    Fault.REFUSE,
    Fault.CUT_MID_STREAM,
    Fault.MALFORMED_FRAME,
    Fault.UNAVAILABLE,
)
FREE = 6
ROUNDS = 12


async def advance(studio: Studio) -> None:
    """Make all jobs of predictions due, and calls of hosts longer ago."""
    async with studio.server.services.database.connection() as conn:
        await conn.execute("update procrastinate_jobs set scheduled_at = now() where status = 'todo'")
        await conn.execute("update predictions set asked_at = asked_at - interval '1 minute'")


async def die(studio: Studio, chance: random.Random) -> None:
    """Leave the rows as a worker does that dies after it has called the host, and before it stores the result."""
    async with studio.server.services.database.connection() as conn:
        ids = [row[0] for row in await conn.fetch("select prediction_id from predictions where ended_at is null")]
        for prediction_id in ids:
            if chance.random() < 0.5:
                await conn.execute("update predictions set host_id = null where prediction_id = $1", prediction_id)


async def call(studio: Studio, chance: random.Random) -> tuple[str, int]:
    """Make one call. Return the id of a prediction that a job makes, and how many units are used for now."""
    given = chance.choice([{}, {}, {"fail": "out of memory"}, {"after_ms": "soon"}, {"webhook": "lost"}])
    given = {"prompt": str(chance.random()), **given}
    if chance.random() < 0.5:
        status, answer = await studio.later(**given)
        return (answer["id"], 1) if status == 200 else ("", 0)
    status, answer = await studio.predict(**given)
    return "", int(status == 200 and answer["status"] == "succeeded")


@pytest.mark.parametrize("seed", sampled(range(12), (0, 1)))
async def test_every_prediction_ends_and_the_quota_equals_a_model(studio: Studio, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a repeatable choice
    quota = {"asset": "coins", "free_per_day": FREE}
    later: list[str] = []
    used = 0
    for _ in range(ROUNDS):
        fault = chance.choice(FAULTS)
        key = key_of(fault=fault, rate=0.3, seed=seed, retry_after_s=0.01)
        await studio.set_up(key=key, quota=quota)
        made, units = await call(studio, chance)
        later += [made] if made else []
        used += units
        if chance.random() < 0.5:
            await studio.work_off()
            await die(studio, chance)
            await advance(studio)
    await studio.set_up(quota=quota)
    for _ in range(10):
        await studio.work_off()
        await advance(studio)
    states = [await studio.state(prediction) for prediction in later]
    assert {state["status"] for state in states} <= {"succeeded", "failed"}
    used -= sum(state["status"] == "failed" for state in states)
    assert 0 <= used <= FREE
    expected = FREE - used
    status, answer = await studio.later(fail="to see what is left")
    left = answer["current_count"] + 1 if status == 200 else 0
    assert left == expected
    differences = [difference async for difference in find_differences(studio.server.services.database)]
    assert differences == []
    began = Counter(call.asked["input"]["prompt"] for call in studio.asked("predictions") if call.billed)
    assert set(began.values()) <= {1}
