"""One run of a soak: the load, the disturbances of the server and its stores, and the verdicts."""

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
    leftover_anomalies,
    log_anomalies,
    memory_anomalies,
    record_anomalies,
    stream_anomalies,
)
from bench.soak.observations import Answer, Observations, Stream
from bench.soak.records import Key, Leftovers, Record, read_history, read_leftovers, read_rows
from bench.soak.samples import Sample, Sampler, Window, windows
from bench.soak.schedule import TARGETS, Disturbances, Planned, Target, schedule
from bench.soak.testbed import DRAIN_S, SoakTestbed
from bench.soak.vendor_faults import VendorFaults
from deploy.running import while_running
from streams.tasks import background

_SAMPLE_EVERY_S = 5
_END_TIMEOUT_S = 240
"""Time for the last streams to end: the longest stream, refused requests, a caller who comes back late."""
_SETTLE_TIMEOUT_S = 60
_OUTAGE_S = (4.0, 9.0)
"""The shortest and the longest outage of a store."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters of a run. An interval of 0 means never."""

    total_s: float
    over_s: float
    """The time over which the beginning of the first streams is spread."""
    replace_every_s: float
    fault_every_s: float
    targets: Sequence[Target] = TARGETS
    """The targets that are disturbed."""
    seed: int = 1
    lengths: Lengths = field(default_factory=Lengths)
    report_every_s: float = 60

    @property
    def window_s(self) -> float:
        """Memory is measured in windows of this length, and may not grow after the first one."""
        return self.total_s / 6


@dataclass(frozen=True, slots=True)
class Settled:
    """The state after the load."""

    leftovers: Leftovers
    history: dict[Key, Record]
    """The records that users read through the API."""
    rows: dict[Key, Record]
    """The records in PostgreSQL."""
    children: int
    exit_codes: Sequence[int | None]
    """The exit codes of both servers after SIGTERM; None if a server did not exit in time."""


@dataclass(slots=True)
class Run:
    """A running soak."""

    testbed: SoakTestbed
    plan: "Plan"
    observations: Observations
    begun: datetime
    """When the load began."""
    disturbances: Disturbances = field(default_factory=Disturbances)
    samples: list[Sample] = field(default_factory=list)
    vendor_faults: VendorFaults = field(default_factory=VendorFaults)
    load_over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when no more streams begin: after `plan.total_s`, or earlier to end the run and judge it."""
    load_end_s: float = 0
    """The time at which `load_over` was set."""
    misses: list[Anomaly] = field(default_factory=list)
    """The misses that were printed during the load."""
    _checked: tuple[int, int] = (0, 0)
    """The numbers of streams and answers that have been checked for misses."""

    async def load(self) -> None:
        """Run all callers to their last event, and disturb processes and stores meanwhile.

        Raise `Failed` if a server exits by itself.
        """
        servers = {"the server": self.testbed.parent, "the long-lived process": self.testbed.long_lived}
        await while_running(servers, self._load())

    async def _load(self) -> None:
        async with open_http() as http:
            urls = cycle((self.testbed.url, self.testbed.url, self.testbed.long_lived_url))
            clients = [
                UserClient(http, url, _headers(token), self.observations)
                for url, token in zip(urls, self.testbed.tokens, strict=False)
            ]
            callers = make_callers(clients, self.observations, lengths=self.plan.lengths, seed=self.plan.seed)
            with suppress(TimeoutError):  # Streams that have not ended are recorded as faults.
                async with (
                    background(self._sample()),
                    asyncio.timeout(None) as deadline,
                    asyncio.TaskGroup() as tasks,
                ):
                    tasks.create_task(self._end_load(deadline))
                    tasks.create_task(self._disturb())
                    for number, caller in enumerate(callers):
                        first_s = self.plan.over_s * number / len(callers)
                        tasks.create_task(caller.run(first_s=first_s, over=self.load_over))

    async def _end_load(self, deadline: asyncio.Timeout) -> None:
        """Wait for the end of the load, then set the deadline of the last streams."""
        await wait_for(self.load_over, self.plan.total_s - self.observations.now_s())
        self.load_over.set()
        self.load_end_s = self.observations.now_s()
        deadline.reschedule(asyncio.get_running_loop().time() + _END_TIMEOUT_S)

    async def _disturb(self) -> None:
        """Disturb each target in a separate task, so that a slow restart of a store delays no replacement."""
        planned = schedule(
            self.plan.total_s, replace_every_s=self.plan.replace_every_s, fault_every_s=self.plan.fault_every_s
        )
        async with asyncio.TaskGroup() as tasks:
            for target in self.plan.targets:
                tasks.create_task(self._disturb_one([event for event in planned if event.target == target]))

    async def _disturb_one(self, planned: Sequence[Planned]) -> None:
        rng = random.Random(f"{self.plan.seed} {planned and planned[0].target}")  # noqa: S311 - not used for security
        for event in planned:
            await wait_for(self.load_over, event.at_s - self.observations.now_s())
            if self.load_over.is_set():
                return
            disturbance = self.disturbances.begin(event.target, event.action, at_s=self.observations.now_s())
            if event.target == "server":
                await self._replace()
            else:
                await self.testbed.disturb(event.target, event.action, for_s=rng.uniform(*_OUTAGE_S))
            disturbance.end_s = self.observations.now_s()
            _log(f"{disturbance} from {disturbance.begin_s:.1f} to {disturbance.end_s:.1f} s")

    async def _replace(self) -> None:
        """Send SIGHUP and wait until the old processes have ended, for twice the drain timeout at most."""
        old = set(self.testbed.children())
        self.testbed.replace_processes()
        until = time.monotonic() + 2 * DRAIN_S
        while old & set(self.testbed.children()) and time.monotonic() < until:  # noqa: ASYNC110 - depends on other processes
            await asyncio.sleep(0.5)

    async def _sample(self) -> None:
        observations = self.observations
        sampler = Sampler(self.testbed, lambda: (observations.live, len(observations.streams), observations.events))
        reported_s = 0.0
        while True:
            self.samples.append(await sampler.sample(observations.now_s()))
            self._read_vendor_faults()
            self.report_new_misses()
            if observations.now_s() - reported_s >= self.plan.report_every_s:
                reported_s = observations.now_s()
                _log(self._progress())
            await asyncio.sleep(_SAMPLE_EVERY_S)

    def report_new_misses(self) -> None:
        """Print the misses since the previous call, with the ids that identify them in the server's log."""
        streams, answers = self._checked
        new = self._anomalies(self.observations.streams[streams:], self.observations.answers[answers:])
        self._checked = len(self.observations.streams), len(self.observations.answers)
        for anomaly in new:
            if anomaly.miss:
                self.misses.append(anomaly)
                ids = f"stream {anomaly.stream_id or '-'}, request {anomaly.request_id or '-'}"
                _log(f"missed at {anomaly.at_s:.1f} s: {anomaly.what}; {ids}")

    def _progress(self) -> str:
        sample, observations = self.samples[-1], self.observations
        return (
            f"{sample.at_s / 60:.1f} min: {sample.live} live, {sample.ended:,} ended, {sample.events:,} events; "
            f"{len(self.misses)} misses, {len(observations.answers)} requests refused or failed; "
            f"children {sample.children_bytes / 2**20:.0f} MiB in {sample.children}, "
            f"parent {sample.parent_bytes / 2**20:.0f} MiB, "
            f"long-lived process {sample.long_lived_bytes / 2**20:.0f} MiB, "
            f"Valkey {sample.valkey_bytes / 2**20:.1f} MiB, "
            f"generator {sample.generator_cpu_s / max(1, sample.at_s):.0%} of a core"
        )

    def anomalies_so_far(self) -> list[Anomaly]:
        """Return the anomalies that the callers have observed so far."""
        return self._anomalies(self.observations.streams, self.observations.answers)

    def _anomalies(self, streams: Sequence[Stream], answers: Sequence[Answer]) -> list[Anomaly]:
        of_streams = stream_anomalies(streams, self.disturbances)
        of_streams += error_anomalies(streams, self.disturbances, self.vendor_faults)
        return of_streams + answer_anomalies(answers, self.disturbances)

    def _read_vendor_faults(self) -> None:
        with self.testbed.vendor_faults.open("rb") as lines:
            self.vendor_faults = VendorFaults.of(lines, begun=self.begun)

    async def settle(self) -> "Settled":
        """Read the stored records and leftover state after the load, then stop both servers."""
        testbed, observations = self.testbed, self.observations
        stores = testbed.stores
        leftovers = await read_leftovers(stores.database_url, stores.redis_url, within_s=_SETTLE_TIMEOUT_S)
        history = await read_history(
            testbed.url, observations.turns, headers=lambda user: _headers(testbed.tokens[user])
        )
        rows = await read_rows(stores.database_url)
        children = len(testbed.children())
        return Settled(leftovers, history, rows, children, await testbed.stop_servers())

    def judge(self, settled: "Settled") -> Judged:
        """Judge the observations, the samples, the stores and the server's log."""
        testbed, observations, disturbances = self.testbed, self.observations, self.disturbances
        judged, at_s = Judged(), round(observations.now_s(), 1)
        self._read_vendor_faults()
        wrong = stream_anomalies(observations.streams, disturbances)
        judged.add(
            "every stream has one terminal event, no gap, the right digest",
            f"{len(observations.streams):,} streams",
            wrong,
        )
        unexplained = error_anomalies(observations.streams, disturbances, self.vendor_faults)
        judged.add(
            "every `error` is explained",
            f"{sum(s.outcome not in {'', 'end'} for s in observations.streams):,}",
            unexplained,
        )
        failures = answer_anomalies(observations.answers, disturbances)
        judged.add(
            "every refused request is explained", f"{len(observations.answers):,} refused or failed", failures
        )
        for where, kept in (("PostgreSQL", settled.rows), ("the history", settled.history)):
            lost = record_anomalies(observations.turns, kept, disturbances, where=where)
            judged.add(
                f"every acknowledged answer is stored: {where}", f"{len(observations.turns):,} answers", lost
            )
        left = leftover_anomalies(settled.leftovers, at_s=at_s)
        judged.add("no turn is left running, queued or locked", f"{len(left)} left", left)
        judged.add("memory", self._memory(), memory_anomalies(self.windows()))
        count = [Anomaly(what="wrong number of processes", at_s=at_s)] * (settled.children != testbed.processes)
        judged.add("processes at the end", f"{settled.children} of {testbed.processes}", count)
        failed = [
            Anomaly(what="a server did not exit with code 0", at_s=at_s) for code in settled.exit_codes if code != 0
        ]
        judged.add("SIGTERM at the end", f"exit codes {', '.join(map(str, settled.exit_codes))}", failed)
        with testbed.log.open("rb") as lines:
            errors, counts = log_anomalies(lines, disturbances, begun=self.begun)
        events_text = ", ".join(f"{count} {name}" for name, count in counts.most_common(8)) or "none"
        judged.add("no error in the server's log", events_text, errors)
        return judged

    def windows(self) -> list[Window]:
        return windows(self.samples, total_s=self.load_end_s, every_s=self.plan.window_s)

    def _memory(self) -> str:
        settled = self.windows()[1:]
        if not settled or settled[0].children_bytes <= 0:
            return "not measured"
        first, last, highest = settled[0], settled[-1], max(window.children_bytes for window in settled)
        return (
            f"children {first.children_bytes / 2**20:.1f} → {last.children_bytes / 2**20:.1f} MiB "
            f"({last.children_bytes / first.children_bytes - 1:+.1%}; highest {highest / 2**20:.1f}), "
            f"parent {first.parent_bytes / 2**20:.1f} → {last.parent_bytes / 2**20:.1f} MiB, "
            f"long-lived process {first.long_lived_bytes / 2**20:.1f} → {last.long_lived_bytes / 2**20:.1f} MiB "
            f"({last.long_lived_bytes / max(1, first.long_lived_bytes) - 1:+.1%})"
        )


def _headers(token: str) -> dict[str, str]:
    return {"X-Service-App-Id": APP, "X-Service-Session-Token": token}


def _log(line: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {line}", flush=True)
