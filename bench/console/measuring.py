"""Calls each operation as a client does, and reads from the access log how long the server took."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import ClientSession

from bench.console.operations import Case, Operation
from bench.console.values import Values
from bench.figures import Spread
from streams.wire.codec import loads
from streams.wire.ids import is_id

TARGET_MS = 200.0
_FOLLOWED = 5
"""How many pages are read to come to the middle of a list whose cursors cannot be calculated."""
_BUDGET_S = 30.0
"""Time for the calls of a case. A case that is so slow has fewer calls, and has missed its target."""


@dataclass(slots=True)
class Measured:
    """The calls of a case. Without a log of the server, `server_s` has the times of the client."""

    operation: str
    case: str
    answers: frozenset[int] = frozenset({200})
    """The statuses that its calls may have."""
    statuses: set[int] = field(default_factory=set)
    ids: list[str] = field(default_factory=list)
    client_s: list[float] = field(default_factory=list)
    server_s: list[float] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return not self.statuses <= self.answers

    @property
    def p95_ms(self) -> float:
        return Spread.of(self.server_s).at(95)

    @property
    def met(self) -> bool:
        return not self.failed and self.p95_ms <= TARGET_MS


async def measure_all(
    http: ClientSession, values: Values, *, of: Sequence[Operation], calls: int
) -> list[Measured]:
    """Call all operations. `http` has the URL of the server and the headers of an operator."""
    found = []
    for operation in of:
        for case in operation.cases:
            path = case.path if not case.is_middle else await _middle(http, case, values)
            if path is not None:
                measured = Measured(operation.path, case.name, case.answers)
                await _measure(http, path, measured, calls=calls)
                found.append(measured)
    return found


async def _measure(http: ClientSession, path: str, measured: Measured, *, calls: int) -> None:
    begun = time.perf_counter()
    for _ in range(calls):
        before = time.perf_counter()
        async with http.get(path) as response:
            await response.read()
        measured.statuses.add(response.status)
        measured.client_s.append(time.perf_counter() - before)
        measured.ids.append(response.headers["X-Request-Id"])
        if time.perf_counter() - begun > _BUDGET_S:
            break
    measured.server_s = measured.client_s


async def _middle(http: ClientSession, case: Case, values: Values) -> str | None:
    """Return the path of a page in the middle of a list, or `None` if the list has one page."""
    following = await _next(http, case.path)
    for _ in range(_FOLLOWED):
        match following:
            case None:
                return None
            case int():
                return _after(case.path, following // 2)
            case str() if is_id(following):
                return _after(case.path, values.middle_id)
        further = await _next(http, _after(case.path, following))
        if further is None:
            break
        following = further
    return _after(case.path, following)


async def _next(http: ClientSession, path: str) -> Any:
    async with http.get(path) as response:
        return loads(await response.read()).get("next")


def _after(path: str, cursor: object) -> str:
    return f"{path}{'&' if '?' in path else '?'}before={quote(str(cursor))}"


def read_log(measured: Sequence[Measured], log: Path) -> None:
    """Take the times of the server from its access log."""
    ms = dict(_access_lines(log))
    for each in measured:
        each.server_s = [ms[request_id] / 1000 for request_id in each.ids]


def _access_lines(log: Path) -> Iterator[tuple[str, float]]:
    for raw in log.read_bytes().splitlines():
        if raw.startswith(b"{") and b'"event":"request"' in raw:
            line = loads(raw)
            yield line["request_id"], line["ms"]
