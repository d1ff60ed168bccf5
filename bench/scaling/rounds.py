"""One round: a load on some nodes or relays, and what it costs them and the stores."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from redis.asyncio import Redis

from bench.arrivals import run_on_each
from bench.deployment import Deployment
from bench.figures import Figures, figures
from bench.machine import Cores, Counters, Usage
from bench.scenarios import Load

TargetName = Literal["Parley", "relay"]
LOADS = {"20x0": "20 deltas, unpaced", "100x0": "100 deltas, unpaced"}
"""The loads by their models of the vendor. Deltas follow each other as fast as the vendor can write."""
AT_ONCE = 100
"""The streams on each node, which occupy a core."""
LEAST = 0.9
"""The lowest ratio to one node that counts as linear."""


@dataclass(frozen=True, slots=True)
class Round:
    """`commands` and the times are those of the stores for all streams."""

    target: TargetName
    nodes: int
    figures: Figures
    commands: int
    valkey_s: float
    postgres_s: float

    @property
    def streams_per_cpu_s(self) -> float:
        return self.figures.ended / self.figures.cpu_s if self.figures.cpu_s else 0

    @property
    def deltas_per_cpu_s(self) -> float:
        return self.figures.deltas / self.figures.cpu_s if self.figures.cpu_s else 0

    def per_stream(self, value: float) -> float:
        return value / max(1, self.figures.ended)


@dataclass(frozen=True, slots=True)
class Group:
    """All rounds of a load on a number of nodes, and the rounds on one node that preceded them."""

    rounds: Sequence[Round]
    alone: Sequence[Round]

    @property
    def target(self) -> TargetName:
        return self.rounds[0].target

    @property
    def load(self) -> str:
        return self.rounds[0].figures.load

    @property
    def nodes(self) -> int:
        return self.rounds[0].nodes

    @property
    def ratios(self) -> list[float]:
        """The streams per second of CPU time, as a ratio to those of one node in the same round."""
        pairs = zip(self.rounds, self.alone, strict=True)
        return [each.streams_per_cpu_s / max(1e-9, one.streams_per_cpu_s) for each, one in pairs]

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def failed(self) -> int:
        return sum(each.figures.failed for each in self.rounds)

    @property
    def faults(self) -> set[str]:
        return {fault for each in self.rounds for fault in (*each.figures.errors, *each.figures.faults)}


async def run_round(
    deployment: Deployment,
    valkey: "Redis[str]",
    cores: Cores,
    *,
    target: TargetName,
    model: str,
    nodes: int,
    for_s: float,
) -> Round:
    load = Load(LOADS[model], [model], for_s=for_s, at_once=AT_ONCE * nodes, read_every=16)
    targets, all_pids = deployment.nodes, deployment.pids
    if target == "relay":
        targets, all_pids = deployment.relays, deployment.baseline_pids
    pids, generators = all_pids[:nodes], (os.getpid(), *deployment.vendor_pids)
    stores = [(pid,) for pid in deployment.store_pids]
    commands, spent = await _commands(valkey), [Usage.of(pid).cpu_s for pid in stores]
    before = Counters.now(pids, generators)
    result = await run_on_each(load, targets[:nodes], pids=pids)
    after = Counters.now(pids, generators)
    postgres_s, valkey_s = (Usage.of(pid).cpu_s - before_s for pid, before_s in zip(stores, spent, strict=True))
    deltas = int(model.partition("x")[0])
    found = figures(load, result, before, after, cores, target=target, deltas=deltas)
    return Round(target, nodes, found, await _commands(valkey) - commands, valkey_s, postgres_s)


async def _commands(valkey: "Redis[str]") -> int:
    return int((await valkey.info("stats"))["total_commands_processed"])


def grouped(rounds: Sequence[Round]) -> list[Group]:
    """Return the rounds by target, load and number of nodes. The lowest number is what others are compared with."""
    groups: dict[tuple[str, str, int], list[Round]] = {}
    for each in rounds:
        groups.setdefault((each.target, each.figures.load, each.nodes), []).append(each)
    alone = min(each.nodes for each in rounds)
    return [Group(group, groups[target, load, alone]) for (target, load, _), group in groups.items()]
