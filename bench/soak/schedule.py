"""When a soak replaces processes and takes stores away, and what was going on at any time of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Target = Literal["server", "PostgreSQL", "Valkey"]
TARGETS: tuple[Target, ...] = ("server", "PostgreSQL", "Valkey")
Action = Literal["replace", "kill", "pause", "empty"]
"""Processes are replaced (SIGHUP). A store is killed (SIGKILL) and started again on its data, or without it
(`empty`), or paused (SIGSTOP, SIGCONT)."""

_ACTIONS: dict[Target, tuple[Action, ...]] = {
    "Valkey": ("kill", "pause", "empty", "pause"),
    "PostgreSQL": ("pause", "kill"),
}
_FIRST: dict[Target, float] = {"Valkey": 0.25, "PostgreSQL": 0.75}
"""When the first fault of a store comes, as a share of the time between two of them."""
RECOVERY_S = 10
"""For so long after a store is back, what it did to streams and requests may still show."""


@dataclass(frozen=True, slots=True, order=True)
class Planned:
    """`at_s` counts from the beginning of the load."""

    at_s: float
    target: Target
    action: Action


def schedule(total_s: float, *, replace_every_s: float, fault_every_s: float) -> list[Planned]:
    """All that is planned for a load of that length, in the order of time; an interval of 0 means never.

    With 5 and 10 minutes between them a store's fault and a replacement are 2.5 minutes apart, so that a drain of
    the default length has ended before the next fault comes.
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
    """`end_s` is infinite while it lasts."""

    target: Target
    action: Action
    begin_s: float
    end_s: float = float("inf")

    def __str__(self) -> str:
        return f"{self.target} {self.action}"


@dataclass(slots=True)
class Disturbances:
    """What was done so far."""

    all: list[Disturbance] = field(default_factory=list)

    def begin(self, target: Target, action: Action, *, at_s: float) -> Disturbance:
        """Note the beginning of one; its `end_s` is set by whoever ends it."""
        self.all.append(Disturbance(target, action, at_s))
        return self.all[-1]

    def during(self, begin_s: float, end_s: float) -> list[Disturbance]:
        """Those that overlap that time, with `RECOVERY_S` after each."""
        return [one for one in self.all if one.begin_s <= end_s and begin_s <= one.end_s + RECOVERY_S]

    def names(self, begin_s: float, end_s: float) -> list[str]:
        """As `during`, as text."""
        return [str(one) for one in self.during(begin_s, end_s)]

    def of(self, targets: Iterable[Target], begin_s: float, end_s: float) -> bool:
        """Whether one of `targets` was disturbed in that time."""
        wanted = frozenset(targets)
        return any(one.target in wanted for one in self.during(begin_s, end_s))
