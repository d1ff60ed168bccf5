"""Integers beyond 64 bits reach the model host, and come back from it, with all their digits."""

import pytest

from tests.app.predictions.hosts import Studio, advance
from vendors.sandbox.faults import key_of

SEED = 2**64 + 1
HUGE = 10**400


async def test_an_awaited_prediction_passes_integers_of_any_size_on_and_back(studio: Studio):
    status, answer = await studio.predict(seed=SEED, output=[-SEED, {"n": HUGE}])
    assert status == 200, answer
    assert answer["input"] == {"prompt": "Alice", "seed": SEED, "output": [-SEED, {"n": HUGE}]}
    assert answer["output"] == [str(-SEED), f'{{"n":{HUGE}}}']
    [asked] = studio.asked("predictions")
    assert str(asked.asked["input"]["seed"]) == str(SEED)


@pytest.mark.parametrize("key", ["sandbox", key_of(fault="cut_mid_stream", times=1)], ids=["", "response lost"])
async def test_a_prediction_made_later_does_too_and_is_found_when_the_response_was_lost(studio: Studio, key: str):
    await studio.set_up(key=key)
    status, answer = await studio.later(seed=SEED, output=SEED)
    assert status == 200, answer
    for _ in range(3):
        await studio.work_off()
        await advance(studio)
    assert (await studio.state(answer["id"]))["output"] == [str(SEED)]
    [asked] = studio.asked("predictions")
    assert str(asked.asked["input"]["seed"]) == str(SEED)
