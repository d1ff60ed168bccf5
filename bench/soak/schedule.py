"""Schedules the disturbances of a soak, and records when each of them began and ended."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Target = Literal["server", "PostgreSQL", "Valkey"]
TARGETS: tuple[Target, ...] = ("server", "PostgreSQL", "Valkey")
Action = Literal["replace", "kill", "pause", "empty"]
"""`replace` replaces the server's processes (SIGHUP). A store is killed with SIGKILL and restarted with its data
(`kill`) or without it (`empty`), or paused with SIGSTOP and SIGCONT (`pause`)."""

_ACTIONS: dict[Target, tuple[Action, ...]] = {
    "Valkey": ("kill", "pause", "empty", "pause"),
    "PostgreSQL": ("pause", "kill"),
}
_FIRST: dict[Target, float] = {"Valkey": 0.25, "PostgreSQL": 0.75}
"""The time of a store's first fault, as a share of the time between two of its faults."""
RECOVERY_S = 10
"""For this long after the end of a disturbance, it can still affect streams and requests."""


@dataclass(frozen=True, slots=True, order=True)
class Planned:
    """A planned disturbance. `at_s` counts from the beginning of the load."""

    at_s: float
    target: Target
    action: Action


def schedule(total_s: float, *, replace_every_s: float, fault_every_s: float) -> list[Planned]:
    """Return all disturbances of a load of length `total_s`, ordered by time. An interval of 0 means never.

    With the default intervals of 5 and 10 minutes, a store's fault and a replacement are 2.5 minutes apart. A drain
    of the default length ends before the next fault.
    """
    planned = [Planned(at_s, "server", "replace") for at_s in _times(replace_every_s, replace_every_s, total_s)]
    for store, actions in _ACTIONS.items():
        times = _times(_FIRST[store] * fault_every_s, fault_every_s, total_s)
        planned += [Planned(at_s, store, actions[number % len(actions)]) for number, at_s in enumerate(times)]
    return sorted(planned)


def _times(first_s: float, every_s: float, total_s: float) -> list[float]:
    if not every_s:
        return []
    return [
        first_s + number * every_s
        for number in range(int(total_s / every_s) + 1)
        if first_s + number * every_s < total_s
    ]


@dataclass(slots=True)
class Disturbance:
    """A disturbance that took place. `end_s` is infinite while it lasts."""

    target: Target
    action: Action
    begin_s: float
    end_s: float = float("inf")

    def __str__(self) -> str:
        return f"{self.target} {self.action}"


@dataclass(slots=True)
class Disturbances:
    """All disturbances so far."""

    all: list[Disturbance] = field(default_factory=list)

    def begin(self, target: Target, action: Action, *, at_s: float) -> Disturbance:
        """Record the beginning of a disturbance. The caller sets its `end_s`."""
        self.all.append(Disturbance(target, action, at_s))
        return self.all[-1]

    def during(self, begin_s: float, end_s: float) -> list[Disturbance]:
        """Return the disturbances that overlap the given time, extended by `RECOVERY_S` each."""
        return [
            disturbance
            for disturbance in self.all
            if disturbance.begin_s <= end_s and begin_s <= disturbance.end_s + RECOVERY_S
        ]

    def names(self, begin_s: float, end_s: float) -> list[str]:
        """Return the names of the disturbances that `during()` returns."""
        return [str(disturbance) for disturbance in self.during(begin_s, end_s)]

    def of(self, targets: Iterable[Target], begin_s: float, end_s: float) -> bool:
        """Return whether one of `targets` was disturbed in the given time."""
        target_set = frozenset(targets)
        return any(disturbance.target in target_set for disturbance in self.during(begin_s, end_s))
