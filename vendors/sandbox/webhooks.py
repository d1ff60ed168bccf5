"""Sends the webhooks of emulated platforms in the background, with faults on demand."""

import asyncio
import heapq
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count

import aiohttp
from pydantic import Field

from streams.tasks import stopping
from streams.wire.model import Model

_TIMEOUT = aiohttp.ClientTimeout(total=5)
_RETRY_AFTER_S = (0.5, 2, 10, 60)
"""The waits before further attempts at a webhook that was not accepted."""


class WebhookFault(StrEnum):
    LOST = "lost"
    DUPLICATE = "duplicate"
    """It is sent twice, `delay_ms` apart."""
    DELAYED = "delayed"
    REORDERED = "reordered"
    """It is sent after the next one, or after `delay_ms` if there is none until then."""


class WebhookFaults(Model, extra="forbid"):
    fault: WebhookFault = Field(strict=False)
    rate: float = Field(default=1, ge=0, le=1)
    """The share of webhooks that have the fault."""
    times: int | None = Field(default=None, ge=0)
    """The number of webhooks that can have it. `None`: no limit."""
    seed: int = 0
    delay_ms: int = Field(default=70, ge=0)


@dataclass(order=True)
class _Delivery:
    due: float
    number: int
    url: str = field(compare=False)
    body: bytes = field(compare=False)
    headers: Callable[[bytes], Mapping[str, str]] = field(compare=False)
    attempt: int = field(default=0, compare=False)


class Webhooks:
    """Webhooks that are due. `run` sends them: each at once, once and in order, unless `faults` say otherwise."""

    def __init__(self) -> None:
        self._faults: WebhookFaults | None = None
        self._left: int | None = None
        self._random = random.Random(0)  # noqa: S311 - a repeatable choice, not used for security
        self._due: list[_Delivery] = []
        self._held: list[_Delivery] = []
        self._numbers = count()
        self._changed = asyncio.Event()

    def set_faults(self, faults: WebhookFaults | None) -> None:
        self._faults, self._left = faults, None if faults is None else faults.times
        self._random = random.Random(0 if faults is None else faults.seed)  # noqa: S311 - as above

    def clear(self) -> None:
        """Forget all webhooks that are not sent yet, and the faults."""
        self._due.clear()
        self._held.clear()
        self.set_faults(None)

    def add(self, url: str, body: bytes, headers: Callable[[bytes], Mapping[str, str]]) -> None:
        """Send a webhook. `headers` are made when it is sent, because a signature has a time."""
        fault, now = self._next_fault(), asyncio.get_running_loop().time()
        delay_s = 0 if self._faults is None else self._faults.delay_ms / 1000
        delivery = _Delivery(now, next(self._numbers), url, body, headers)
        released, self._held = self._held, []
        match fault:
            case WebhookFault.LOST:
                self._held = released
                return
            case WebhookFault.DUPLICATE:
                self._push(delivery)
                self._push(_Delivery(now + delay_s, next(self._numbers), url, body, headers))
            case WebhookFault.DELAYED:
                delivery.due += delay_s
                self._push(delivery)
            case WebhookFault.REORDERED:
                delivery.due += delay_s
                self._push(delivery)
                self._held = [delivery]
            case None:
                self._push(delivery)
        self._release(released, now)

    async def run(self) -> None:
        """Send webhooks until cancelled."""
        loop = asyncio.get_running_loop()
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as http:
            while not stopping():
                self._changed.clear()
                wait_s = self._due[0].due - loop.time() if self._due else None
                if wait_s is not None and wait_s <= 0:
                    await self._send(http, heapq.heappop(self._due))
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._changed.wait()

    async def _send(self, http: aiohttp.ClientSession, delivery: _Delivery) -> None:
        accepted = False
        with suppress(aiohttp.ClientError, TimeoutError):
            async with http.post(
                delivery.url, data=delivery.body, headers=delivery.headers(delivery.body)
            ) as response:
                accepted = response.status < 300
        if not accepted and delivery.attempt < len(_RETRY_AFTER_S):
            delivery.due = asyncio.get_running_loop().time() + _RETRY_AFTER_S[delivery.attempt]
            delivery.attempt += 1
            self._push(delivery)

    def _release(self, released: list[_Delivery], now: float) -> None:
        """Let webhooks that were held back follow the one that was added last."""
        for each in released:
            if each in self._due:
                each.due, each.number = now, next(self._numbers)
        heapq.heapify(self._due)
        self._changed.set()

    def _push(self, delivery: _Delivery) -> None:
        heapq.heappush(self._due, delivery)
        self._changed.set()

    def _next_fault(self) -> WebhookFault | None:
        if self._faults is None or self._left == 0 or self._random.random() >= self._faults.rate:
            return None
        if self._left is not None:
            self._left -= 1
        return self._faults.fault
