"""One run of a soak: the load, what is done to the server and its stores meanwhile, and the judgement."""

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import cycle

from bench.deployment import APP
from bench.soak.callers import Lengths, make_callers, wait_for
from bench.soak.http import UserClient, open_http
from bench.soak.judge import (
    Anomaly,
    Judged,
    answer_anomalies,
    error_anomalies,
    log_anomalies,
    memory_anomalies,
    record_anomalies,
    remains_anomalies,
    stream_anomalies,
)
from bench.soak.notes import Answer, Docs, Stream
from bench.soak.records import Key, Record, Remains, read_history, read_remains, read_rows
from bench.soak.samples import Sample, Sampler, Window, windows
from bench.soak.schedule import TARGETS, Disturbances, Planned, Target, schedule
from bench.soak.stand import DRAIN_S, Stand
from deploy.running import while_running
from streams.tasks import background

_SAMPLE_EVERY_S = 5
_ENDS_WITHIN_S = 240
"""What the last streams may take: the longest stream, refusals, a caller who is away."""
_SETTLES_WITHIN_S = 60
_AWAY_S = (4.0, 9.0)
"""For how long a store is away."""
_MEASURED = 0.4
"""The share of a period, at its end, in which memory is measured."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked of a run. An interval of 0: never."""

    total_s: float
    over_s: float
    """Over which the first streams begin."""
    replace_every_s: float
    fault_every_s: float
    targets: Sequence[Target] = TARGETS
    """What is disturbed."""
    seed: int = 1
    lengths: Lengths = field(default_factory=Lengths)
    tell_every_s: float = 60

    @property
    def settled_s(self) -> float:
        """From when on memory may not grow: the tenth minute of an hour."""
        return self.total_s / 6

    @property
    def period_s(self) -> float:
        """Memory is measured at the end of each."""
        return self.replace_every_s or self.total_s / 12


@dataclass(frozen=True, slots=True)
class Settled:
    """What was found once the load was over."""

    remains: Remains
    history: dict[Key, Record]
    """As users read it."""
    rows: dict[Key, Record]
    """As PostgreSQL has them."""
    children: int
    codes: Sequence[int | None]
    """Exit codes of both servers after SIGTERM; None: it did not end in time."""


@dataclass(slots=True)
class Run:
    """A soak under way."""

    stand: Stand
    plan: "Plan"
    notes: Docs
    begun: datetime
    """When the load began."""
    disturbances: Disturbances = field(default_factory=Disturbances)
    samples: list[Sample] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once no further stream begins: after `plan.total_s`, or earlier to end the run and judge it."""
    over_s: float = 0
    """When that was."""
    misses: list[Anomaly] = field(default_factory=list)
    """What callers have noted so far."""
    _judged: tuple[int, int] = (0, 0)
    """How many streams and answers `misses` takes into account."""

    async def load(self) -> None:
        """All callers, from the first stream to the last event, while processes and stores are disturbed.

        `Failed` where the server ends by itself.
        """
        servers = {"the server": self.stand.parent, "the process that is never replaced": self.stand.lone}
        await while_running(servers, self._load())

    async def _load(self) -> None:
        async with open_http() as http:
            urls = cycle((self.stand.url, self.stand.url, self.stand.lone_url))
            clients = [
                UserClient(http, url, _headers(token), self.notes)
                for url, token in zip(urls, self.stand.tokens, strict=False)
            ]
            callers = make_callers(clients, self.notes, lengths=self.plan.lengths, seed=self.plan.seed)
            with suppress(TimeoutError):  # who has not ended is noted as such
                async with (
                    background(self._sample()),
                    asyncio.timeout(None) as limit,
                    asyncio.TaskGroup() as tasks,
                ):
                    tasks.create_task(self._until_over(limit))
                    tasks.create_task(self._disturb())
                    for number, caller in enumerate(callers):
                        first_s = self.plan.over_s * number / len(callers)
                        tasks.create_task(caller.live(first_s=first_s, over=self.over))

    async def _until_over(self, limit: asyncio.Timeout) -> None:
        """Wait until the load is over, then limit what its last streams may take."""
        await wait_for(self.over, self.plan.total_s - self.notes.now_s())
        self.over.set()
        self.over_s = self.notes.now_s()
        limit.reschedule(asyncio.get_running_loop().time() + _ENDS_WITHIN_S)

    async def _disturb(self) -> None:
        """Each target has a course of its own: a store that takes long to come back delays no replacement."""
        planned = schedule(
            self.plan.total_s, replace_every_s=self.plan.replace_every_s, fault_every_s=self.plan.fault_every_s
        )
        async with asyncio.TaskGroup() as tasks:
            for target in self.plan.targets:
                tasks.create_task(self._disturb_one([one for one in planned if one.target == target]))

    async def _disturb_one(self, planned: Sequence[Planned]) -> None:
        chance = random.Random(f"{self.plan.seed} {planned and planned[0].target}")  # noqa: S311 - a load, no secret
        for one in planned:
            await wait_for(self.over, one.at_s - self.notes.now_s())
            if self.over.is_set():
                return
            disturbance = self.disturbances.begin(one.target, one.action, at_s=self.notes.now_s())
            if one.target == "server":
                await self._replace()
            else:
                await self.stand.disturb(one.target, one.action, for_s=chance.uniform(*_AWAY_S))
            disturbance.end_s = self.notes.now_s()
            _tell(f"{disturbance} from {disturbance.begin_s:.1f} to {disturbance.end_s:.1f} s")

    async def _replace(self) -> None:
        """SIGHUP; over once the processes that were there have ended, or should have by far."""
        old = set(self.stand.children())
        self.stand.replace_processes()
        until = time.monotonic() + 2 * DRAIN_S
        while old & set(self.stand.children()) and time.monotonic() < until:  # noqa: ASYNC110 - other processes
            await asyncio.sleep(0.5)

    async def _sample(self) -> None:
        notes = self.notes
        sampler = Sampler(self.stand, lambda: (notes.live, len(notes.streams), notes.events))
        told_s = 0.0
        while True:
            self.samples.append(await sampler.sample(notes.now_s()))
            self.tell_new_misses()
            if notes.now_s() - told_s >= self.plan.tell_every_s:
                told_s = notes.now_s()
                _tell(self._progress())
            await asyncio.sleep(_SAMPLE_EVERY_S)

    def tell_new_misses(self) -> None:
        """Print what was missed since the last call, with the ids by which it is found in the server's log."""
        streams, answers = self._judged
        new = self._noted(self.notes.streams[streams:], self.notes.answers[answers:])
        self._judged = len(self.notes.streams), len(self.notes.answers)
        for miss in (one for one in new if one.miss):
            self.misses.append(miss)
            ids = f"stream {miss.stream_id or '-'}, request {miss.request_id or '-'}"
            _tell(f"missed at {miss.at_s:.1f} s: {miss.what}; {ids}")

    def _progress(self) -> str:
        sample, notes = self.samples[-1], self.notes
        return (
            f"{sample.at_s / 60:.1f} min: {sample.live} live, {sample.ended:,} ended, {sample.events:,} events; "
            f"{len(self.misses)} misses, {len(notes.answers)} answers not 200; "
            f"children {sample.children_bytes / 2**20:.0f} MiB in {sample.children}, "
            f"parent {sample.parent_bytes / 2**20:.0f} MiB, never replaced {sample.lone_bytes / 2**20:.0f} MiB, "
            f"Valkey {sample.valkey_bytes / 2**20:.1f} MiB, "
            f"generator {sample.generator_cpu_s / max(1, sample.at_s):.0%} of a core"
        )

    def noted(self) -> list[Anomaly]:
        """What callers have noted so far."""
        return self._noted(self.notes.streams, self.notes.answers)

    def _noted(self, streams: Sequence[Stream], answers: Sequence[Answer]) -> list[Anomaly]:
        found = stream_anomalies(streams, self.disturbances) + error_anomalies(streams, self.disturbances)
        return found + answer_anomalies(answers, self.disturbances)

    async def settle(self) -> "Settled":
        """Read what is left and what is kept once the load is over, then end the server."""
        stand, notes = self.stand, self.notes
        stores = stand.stores
        remains = await read_remains(stores.database_url, stores.redis_url, within_s=_SETTLES_WITHIN_S)
        history = await read_history(stand.url, notes.turns, headers=lambda user: _headers(stand.tokens[user]))
        rows = await read_rows(stores.database_url)
        children = len(stand.children())
        return Settled(remains, history, rows, children, await stand.stop_servers())

    def judge(self, settled: "Settled") -> Judged:
        """Judge all of it."""
        stand, notes, disturbances = self.stand, self.notes, self.disturbances
        judged, at_s = Judged(), round(notes.now_s(), 1)
        wrong = stream_anomalies(notes.streams, disturbances)
        judged.add(
            "every stream: one terminal event, no gap, the right digest", f"{len(notes.streams):,} streams", wrong
        )
        unexplained = error_anomalies(notes.streams, disturbances)
        judged.add(
            "every `error` has a reason",
            f"{sum(s.outcome not in {'', 'end'} for s in notes.streams):,}",
            unexplained,
        )
        failures = answer_anomalies(notes.answers, disturbances)
        judged.add(
            "every request: a stream, or refused with reason", f"{len(notes.answers):,} refused or failed", failures
        )
        for where, kept in (("PostgreSQL", settled.rows), ("the history", settled.history)):
            lost = record_anomalies(notes.turns, kept, disturbances, where=where)
            judged.add(f"every acknowledged answer kept: {where}", f"{len(notes.turns):,} answers", lost)
        left = remains_anomalies(settled.remains, at_s=at_s)
        judged.add("no turn left running, parked or held", f"{len(left)} left", left)
        judged.add("memory", self._memory(), memory_anomalies(self.windows(), settled_s=self.plan.settled_s))
        count = [Anomaly(what="another number of processes", at_s=at_s)] * (settled.children != stand.processes)
        judged.add("processes at the end", f"{settled.children} of {stand.processes}", count)
        ended = [Anomaly(what="a server did not end well", at_s=at_s) for code in settled.codes if code != 0]
        judged.add("SIGTERM at the end", f"exit codes {', '.join(map(str, settled.codes))}", ended)
        with stand.log.open("rb") as lines:
            errors, counts = log_anomalies(lines, disturbances, begun=self.begun)
        told = ", ".join(f"{count} {name}" for name, count in counts.most_common(8)) or "nothing"
        judged.add("no error in the server's log", told, errors)
        return judged

    def windows(self) -> list[Window]:
        every_s = self.plan.period_s
        return windows(self.samples, total_s=self.over_s, every_s=every_s, lasting_s=every_s * _MEASURED)

    def _memory(self) -> str:
        settled = [window for window in self.windows() if window.end_s >= self.plan.settled_s]
        if not settled or settled[0].children_bytes <= 0:
            return "not measured"
        first, last, highest = settled[0], settled[-1], max(window.children_bytes for window in settled)
        return (
            f"children {first.children_bytes / 2**20:.1f} → {last.children_bytes / 2**20:.1f} MiB "
            f"({last.children_bytes / first.children_bytes - 1:+.1%}; highest {highest / 2**20:.1f}), "
            f"parent {first.parent_bytes / 2**20:.1f} → {last.parent_bytes / 2**20:.1f} MiB, "
            f"process that is never replaced {first.lone_bytes / 2**20:.1f} → {last.lone_bytes / 2**20:.1f} MiB "
            f"({last.lone_bytes / max(1, first.lone_bytes) - 1:+.1%})"
        )


def _headers(token: str) -> dict[str, str]:
    return {"X-Service-App-Id": APP, "X-Service-Session-Token": token}


def _tell(line: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {line}", flush=True)
