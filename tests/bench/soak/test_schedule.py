"""The schedule of a soak: replacements, and faults of the stores."""

import itertools
from collections import Counter

import pytest

from bench.soak.schedule import RECOVERY_S, Disturbances, schedule

HOUR_S = 3600


def test_an_hour_has_a_replacement_every_five_minutes_and_a_store_fault_every_ten():
    planned = schedule(HOUR_S, replace_every_s=300, fault_every_s=600)

    assert [one.at_s for one in planned if one.target == "server"] == [300 * number for number in range(1, 12)]
    for store in ("Valkey", "PostgreSQL"):
        slots = [int(one.at_s // 600) for one in planned if one.target == store]
        assert slots == [0, 1, 2, 3, 4, 5]
    assert planned == sorted(planned)
    assert all(0 < one.at_s < HOUR_S for one in planned)


def test_stores_are_killed_paused_and_emptied_in_turn():
    planned = schedule(HOUR_S, replace_every_s=300, fault_every_s=600)

    counts = Counter((one.target, one.action) for one in planned)
    assert [one.action for one in planned if one.target == "PostgreSQL"] == ["pause", "kill"] * 3
    assert counts["Valkey", "kill"] == 2
    assert counts["Valkey", "pause"] == 3
    assert counts["Valkey", "empty"] == 1


def test_faults_and_replacements_are_more_than_a_drain_apart():
    planned = [one.at_s for one in schedule(HOUR_S, replace_every_s=300, fault_every_s=600)]

    assert min(after - before for before, after in itertools.pairwise(planned)) >= 120


@pytest.mark.parametrize(("replace_every_s", "fault_every_s", "targets"), [(0, 60, 2), (60, 0, 1), (0, 0, 0)])
def test_a_zero_interval_means_never(replace_every_s: float, fault_every_s: float, targets: int):
    planned = schedule(300, replace_every_s=replace_every_s, fault_every_s=fault_every_s)

    assert len({one.target for one in planned}) == targets


def test_a_disturbance_lasts_until_the_store_has_recovered():
    disturbances = Disturbances()
    killed = disturbances.begin("Valkey", "kill", at_s=10)
    assert disturbances.names(50, 60) == ["Valkey kill"], "it is still unavailable"

    killed.end_s = 20

    assert disturbances.names(5, 9) == []
    assert disturbances.names(5, 11) == disturbances.names(19 + RECOVERY_S, 60) == ["Valkey kill"]
    assert disturbances.names(21 + RECOVERY_S, 60) == []
    assert disturbances.of(["Valkey"], 12, 13)
    assert not disturbances.of(["PostgreSQL", "server"], 12, 13)
