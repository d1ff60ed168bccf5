"""The figures of this process for the overview of operators: its load, and the events of the last minutes."""

import asyncio
import socket
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from actors.runtime.report import ENDED
from app.http.errors import ERRORS
from app.http.request.pipeline import REQUESTS
from app.http.serving.connections import OPEN as CONNECTIONS
from app.http.serving.connections import REFUSED as REFUSED_CONNECTIONS
from app.services import Services
from app.version import version
from storage.availability import stores_away
from storage.operators import figures
from streams.refusals import REFUSED
from streams.tasks import background
from streams.wire.errors import StoreError
from vendors.calls.gate import OPEN as BREAKERS
from vendors.calls.metrics import FIRST_OUTPUT, OUTCOMES

EVERY_S = 5.0
WINDOW_S = 300
"""The period that the figures of vendors and errors cover."""
_RATE_S = 60
_KEPT = int(WINDOW_S / EVERY_S) + 1
_Counts = Mapping[tuple[str, ...], int]


class _Counters(NamedTuple):
    """The counters of this process at one moment."""

    at: float
    ended: _Counts
    attempts: _Counts
    errors: _Counts
    refused: _Counts
    requests: int
    first_output: Mapping[tuple[str, ...], list[float]]

    @classmethod
    def now(cls) -> "_Counters":
        return cls(
            time.monotonic(),
            ENDED.counts(),
            OUTCOMES.counts(),
            ERRORS.counts(),
            REFUSED.counts()
            | {(f"connections_per_{bound}",): n for (bound,), n in REFUSED_CONNECTIONS.counts().items()},
            sum(REQUESTS.counts().values()),
            FIRST_OUTPUT.rows(),
        )


class FiguresOfProcess:
    """Reads the metrics of this process every few seconds, and computes their changes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._began_at = time.time()
        self._counters = deque([_Counters.now()], maxlen=_KEPT)

    def read(self) -> dict[str, Any]:
        """Return the figures of this moment, as JSON."""
        now = _Counters.now()
        oldest, minute = self._counters[0], self._a_minute_ago(now.at)
        self._counters.append(now)
        running = self._services.supervisor.live()
        return {
            "host": socket.gethostname(),
            "version": version(),
            "began_at": self._began_at,
            "draining": self._services.supervisor.draining,
            "live": Counter(actor.kind for actor in running),
            "readers": sum(actor.readers for actor in running),
            "connections": sum(CONNECTIONS.counts().values()),
            "rate_s": min(_RATE_S, now.at - minute.at),
            "requests": now.requests - minute.requests,
            "ended": _grown(now.ended, minute.ended),
            "window_s": now.at - oldest.at,
            "attempts": _grown(now.attempts, oldest.attempts),
            "errors": _grown(now.errors, oldest.errors),
            "refused": _grown(now.refused, oldest.refused),
            "first_output": _grown_rows(now.first_output, oldest.first_output),
            "breakers": [
                sample.labels["account"]
                for family in BREAKERS.collect()
                for sample in family.samples
                if sample.value
            ],
            "stores_away": stores_away(),
        }

    def _a_minute_ago(self, now: float) -> _Counters:
        """Return the newest counters that are at least a minute old, or the oldest."""
        old = [counters for counters in self._counters if counters.at <= now - _RATE_S]
        return old[-1] if old else self._counters[0]


def _grown(now: _Counts, before: _Counts) -> dict[str, int]:
    """Return by how much each series has grown; unchanged ones are omitted. Labels are joined by a tab."""
    grown = {"\t".join(labels): count - before.get(labels, 0) for labels, count in now.items()}
    return {labels: count for labels, count in grown.items() if count}


def _grown_rows(
    now: Mapping[tuple[str, ...], list[float]], before: Mapping[tuple[str, ...], list[float]]
) -> dict[str, list[int]]:
    grown = {}
    for labels, row in now.items():
        old = before.get(labels, [0.0] * len(row))
        if any(counts := [int(new - past) for new, past in zip(row[:-1], old[:-1], strict=True)]):
            grown["\t".join(labels)] = counts
    return grown


async def _publish(services: Services) -> None:
    own = FiguresOfProcess(services)
    while True:
        with suppress(StoreError):  # The next ones follow soon.
            await figures.publish(services.valkey, services.heartbeat.process, own.read())
        await asyncio.sleep(EVERY_S)


@asynccontextmanager
async def publishing_figures(services: Services) -> AsyncIterator[None]:
    """Publish the figures of this process during the block."""
    async with background(_publish(services)):
        yield
    with suppress(StoreError):
        await figures.remove(services.valkey, services.heartbeat.process)
