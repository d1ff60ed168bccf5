"""One scenario: the load, what happens to the nodes, and the state afterwards."""

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.nodes.callers import RestCaller, RestFigures, StreamCaller, headers_of, text_of
from bench.nodes.scenarios import SCENARIOS, Times
from bench.nodes.testbed import NodesTestbed
from bench.soak.http import UserClient, open_http
from bench.soak.observations import Observations
from bench.soak.records import Record, read_rows
from streams.wire.codec import loads

_LAST_STREAMS_S = 180
"""Longer than the longest stream, and than a caller repeats a request that is refused."""
_SETTLE_S = 60
_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Plan:
    """`over_s`: the time over which the first streams begin."""

    streams: int
    model: str
    rest_callers: int
    over_s: float
    times: Times


@dataclass(slots=True)
class Run:
    """A scenario that has run. `calls_begun` and `calls_ended` count the vendor's calls by text."""

    scenario: str
    observations: Observations
    rest: RestFigures = field(default_factory=RestFigures)
    begun: float = 0
    """The time of the monotonic clock when the load began. All other times are seconds since then."""
    happened_s: float = 0
    happened_until_s: float = 0
    happened: str = ""
    seconds: float = 0
    records: list[Record] = field(default_factory=list)
    calls_begun: Counter[str] = field(default_factory=Counter)
    calls_ended: Counter[str] = field(default_factory=Counter)

    def text_of(self, user: int, number: int) -> str:
        return text_of(self.scenario, user, number)


async def run_scenario(testbed: NodesTestbed, scenario: str, plan: Plan) -> Run:
    begun = time.monotonic()
    run = Run(scenario, Observations(lambda: time.monotonic() - begun), begun=begun)
    over = asyncio.Event()
    async with open_http() as http:
        with suppress(TimeoutError):  # Streams that have not ended are recorded as faults.
            async with asyncio.timeout(None) as deadline, asyncio.TaskGroup() as tasks:
                for user, token in enumerate(testbed.tokens[: plan.streams]):
                    client = UserClient(http, testbed.url, headers_of(token), run.observations)
                    caller = StreamCaller(client, run.observations, scenario, user, plan.model)
                    tasks.create_task(caller.run(first_s=plan.over_s * user / plan.streams, over=over))
                for token in testbed.tokens[plan.streams :][: plan.rest_callers]:
                    tasks.create_task(RestCaller(http, testbed.url, token, run.rest).run(over=over))
                try:
                    await asyncio.sleep(plan.over_s)
                    run.happened_s = run.observations.now_s()
                    run.happened = await SCENARIOS[scenario](testbed, plan.times)
                    run.happened_until_s = run.observations.now_s()
                    await asyncio.sleep(plan.times.after_s)
                finally:
                    over.set()
                deadline.reschedule(asyncio.get_running_loop().time() + _LAST_STREAMS_S)
    run.seconds = run.observations.now_s()
    run.records = await _settled_records(testbed, run)
    _count_calls(testbed.calls, run)
    return run


async def _settled_records(testbed: NodesTestbed, run: Run) -> list[Record]:
    """Return the records of the scenario, once each whole stream has one.

    The turns of a killed node are not waited for: they end when their conversation is read the next time.
    """
    whole = sum(stream.outcome == "end" for stream in run.observations.streams)
    until = time.monotonic() + _SETTLE_S
    while True:
        rows = await read_rows(testbed.stores.database_url)
        records = [record for record in rows.values() if record.user_text.startswith(f"{run.scenario} ")]
        complete = sum(record.status == "complete" for record in records)
        if complete >= whole or time.monotonic() > until:
            return records
        await asyncio.sleep(_POLL_S)


def _count_calls(path: Path, run: Run) -> None:
    for line in path.read_bytes().splitlines():
        call = loads(line)
        if call["said"].startswith(f"{run.scenario} "):
            (run.calls_begun if call["what"] == "begin" else run.calls_ended)[call["said"]] += 1
