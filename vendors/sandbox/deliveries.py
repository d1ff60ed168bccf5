"""Calls webhooks for the sandbox's payment platforms, with faults on demand.

A webhook is called until it answers with a 2xx status. Calls of one URL are made one after another, each when it
is due. Those of other URLs do not wait for them.
"""

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count

import aiohttp
from pydantic import Field

from streams.tasks import background, stopping
from streams.wire.model import Model

_CALL_S = 10
_FIRST_RETRY_S = 0.25
_LAST_RETRY_S = 30.0
_RETRIES = 12
_CONCURRENT = 8
_KEPT = 1000

Signed = tuple[Mapping[str, str], bytes]
"""The headers and the body of a call."""


class DeliveryFault(StrEnum):
    LOST = "lost"
    DUPLICATE = "duplicate"
    """It is delivered twice, `delay_ms` apart."""
    DELAYED = "delayed"
    REORDERED = "reordered"
    """It is delivered after the next one, or after `delay_ms` if there is none until then."""


_REPEAT_MS = 70
_DELAY_MS = 1000


class DeliveryFaults(Model, extra="forbid"):
    """Which webhooks of an account have a fault."""

    fault: DeliveryFault | None = Field(default=None, strict=False)
    rate: float = Field(default=1, ge=0, le=1)
    """The share of webhooks that have the fault."""
    times: int | None = Field(default=None, ge=0)
    """The number of webhooks that can have it. `None`: no limit."""
    seed: int = 0
    delay_ms: int | None = Field(default=None, ge=0)
    """Default: 70 for duplicates, otherwise 1000."""


class FaultSource:
    """Chooses the faults of an account's webhooks, always the same ones for a seed."""

    def __init__(self, faults: DeliveryFaults | None = None) -> None:
        self._faults = faults or DeliveryFaults()
        self._left = self._faults.times
        self._random = random.Random(self._faults.seed)  # noqa: S311 - a repeatable choice, not used for security

    @classmethod
    def of(cls, fault: str) -> "FaultSource | None":
        """Return a source that always chooses the fault of this name, or `None` if there is none."""
        return cls(DeliveryFaults(fault=DeliveryFault(fault))) if fault in set(DeliveryFault) else None

    def next(self) -> DeliveryFault | None:
        if self._faults.fault is None or self._left == 0 or self._random.random() >= self._faults.rate:
            return None
        if self._left is not None:
            self._left -= 1
        return self._faults.fault

    def delay_s(self, fault: DeliveryFault | None) -> float:
        default_ms = _REPEAT_MS if fault is DeliveryFault.DUPLICATE else _DELAY_MS
        return (default_ms if self._faults.delay_ms is None else self._faults.delay_ms) / 1000


@dataclass(frozen=True, slots=True)
class Delivery:
    """A webhook that is to be called."""

    url: str
    sign: Callable[[], Signed]
    """Makes the headers and the body anew for each try, because a signature has a time."""
    name: str
    """The id of the event, for the log."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A try to call a webhook. `status` is 0 if it was not reached."""

    name: str
    url: str
    status: int


@dataclass(slots=True, order=True)
class _Attempt:
    """The next try of a delivery. Of two that are due at the same time, the one with the lower number is first."""

    due: float
    number: int
    delivery: Delivery = field(compare=False)
    tries: int = field(default=0, compare=False)


@dataclass(slots=True)
class _Queue:
    """The calls of one URL."""

    attempts: list[_Attempt] = field(default_factory=list)
    """A heap."""
    held: _Attempt | None = None
    """What is delivered after the next one."""
    calls: bool = False

    def due_at(self) -> float | None:
        return self.attempts[0].due if self.attempts and not self.calls else None


class Deliveries:
    """Webhooks that are to be called: at once, once and in order, unless a fault says otherwise."""

    def __init__(self) -> None:
        self.log: deque[Answered] = deque(maxlen=_KEPT)
        self._queues: dict[str, _Queue] = {}
        self._calls: asyncio.Queue[tuple[_Queue, _Attempt]] = asyncio.Queue()
        """What is due, at most one call of each queue."""
        self._numbers = count()
        self._changed = asyncio.Event()

    def add(self, delivery: Delivery, faults: FaultSource) -> None:
        """Deliver a webhook with the next fault of `faults`."""
        fault, now = faults.next(), asyncio.get_running_loop().time()
        if fault is DeliveryFault.LOST:
            return
        queue = self._queues.setdefault(delivery.url, _Queue())
        held, queue.held = queue.held, None
        later = now + faults.delay_s(fault)
        match fault:
            case DeliveryFault.DUPLICATE:
                self._push(queue, delivery, due=now)
                self._push(queue, delivery, due=later)
            case DeliveryFault.DELAYED:
                self._push(queue, delivery, due=later)
            case DeliveryFault.REORDERED if held is None:
                queue.held = self._push(queue, delivery, due=later)
            case _:
                self._push(queue, delivery, due=now)
        if held is not None and held in queue.attempts:
            queue.attempts.remove(held)
            heapq.heapify(queue.attempts)
            self._push(queue, held.delivery, due=now)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to be delivered."""
        return not self._queues

    def forget(self) -> None:
        """Drop the deliveries that are not made yet."""
        self._queues.clear()
        self.log.clear()

    async def run(self) -> None:
        """Make deliveries until it is cancelled."""
        timeout = aiohttp.ClientTimeout(total=_CALL_S)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as http, AsyncExitStack() as stack:
            for _ in range(_CONCURRENT):
                await stack.enter_async_context(background(self._work(http)))
            while not stopping():
                self._changed.clear()
                now = asyncio.get_running_loop().time()
                for queue in self._queues.values():
                    if (due_at := queue.due_at()) is not None and due_at <= now:
                        queue.calls = True
                        self._calls.put_nowait((queue, heapq.heappop(queue.attempts)))
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._wait_s(now)):
                        await self._changed.wait()

    async def _work(self, http: aiohttp.ClientSession) -> None:
        while not stopping():
            queue, attempt = await self._calls.get()
            await self._call(http, queue, attempt)

    def _wait_s(self, now: float) -> float | None:
        times = [due_at for queue in self._queues.values() if (due_at := queue.due_at()) is not None]
        return min(times) - now if times else None

    async def _call(self, http: aiohttp.ClientSession, queue: _Queue, attempt: _Attempt) -> None:
        delivery = attempt.delivery
        headers, body = delivery.sign()
        try:
            async with http.post(delivery.url, data=body, headers=headers, allow_redirects=False) as response:
                status = response.status
        except (aiohttp.ClientError, TimeoutError, OSError):
            status = 0
        self.log.append(Answered(delivery.name, delivery.url, status))
        if not 200 <= status < 300 and attempt.tries < _RETRIES:
            wait_s = min(_FIRST_RETRY_S * 2**attempt.tries, _LAST_RETRY_S)
            due = asyncio.get_running_loop().time() + wait_s
            self._push(queue, delivery, due=due, tries=attempt.tries + 1)
        queue.calls = False
        if not queue.attempts and self._queues.get(delivery.url) is queue:
            del self._queues[delivery.url]
        self._changed.set()

    def _push(self, queue: _Queue, delivery: Delivery, *, due: float, tries: int = 0) -> _Attempt:
        attempt = _Attempt(due, next(self._numbers), delivery, tries)
        heapq.heappush(queue.attempts, attempt)
        self._changed.set()
        return attempt
