"""Calls webhooks for the sandbox's platforms, and repeats calls that are not answered with a 2xx status."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import aiohttp

from streams.tasks import background

_CALL_S = 10
_FIRST_RETRY_S = 0.25
_LAST_RETRY_S = 30.0
_RETRIES = 12
_CONCURRENT = 8
_KEPT = 1000

Signed = tuple[Mapping[str, str], bytes]
"""The headers and the body of a call."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One call of a webhook."""

    url: str
    sign: Callable[[], Signed]
    """Makes the headers and the body anew for each try."""
    name: str
    """The id of the event, for the log."""
    delay_s: float = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """A try to call a webhook. `status` is 0 if it was not reached."""

    name: str
    url: str
    status: int


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The next try to make the first of `deliveries`. The others follow it."""

    deliveries: Sequence[Delivery]
    era: int
    tries: int = 0


class Deliveries:
    """Deliveries that are added together are made in their order. Others do not wait for them."""

    def __init__(self) -> None:
        self.log: deque[Answered] = deque(maxlen=_KEPT)
        self._due: asyncio.Queue[_Attempt] = asyncio.Queue()
        self._era = 0

    def add(self, deliveries: Sequence[Delivery]) -> None:
        """Make deliveries, the first after its delay."""
        if deliveries:
            self._later(deliveries[0].delay_s, _Attempt(deliveries, self._era))

    def forget(self) -> None:
        """Drop the deliveries that are not made yet."""
        self._era += 1
        self.log.clear()

    async def run(self) -> None:
        """Make deliveries until it is cancelled."""
        timeout = aiohttp.ClientTimeout(total=_CALL_S)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as http, AsyncExitStack() as stack:
            for _ in range(_CONCURRENT):
                await stack.enter_async_context(background(self._work(http)))
            await asyncio.Event().wait()

    async def _work(self, http: aiohttp.ClientSession) -> None:
        while True:
            attempt = await self._due.get()
            if attempt.era != self._era:
                continue
            delivered = await self._deliver(http, attempt.deliveries[0])
            if delivered or attempt.tries == _RETRIES:
                self.add(attempt.deliveries[1:])
            else:
                wait_s = min(_FIRST_RETRY_S * 2**attempt.tries, _LAST_RETRY_S)
                self._later(wait_s, replace(attempt, tries=attempt.tries + 1))

    def _later(self, wait_s: float, attempt: _Attempt) -> None:
        asyncio.get_running_loop().call_later(wait_s, self._due.put_nowait, attempt)

    async def _deliver(self, http: aiohttp.ClientSession, delivery: Delivery) -> bool:
        headers, body = delivery.sign()
        try:
            async with http.post(delivery.url, data=body, headers=headers, allow_redirects=False) as response:
                status = response.status
        except (aiohttp.ClientError, TimeoutError, OSError):
            status = 0
        self.log.append(Answered(delivery.name, delivery.url, status))
        return 200 <= status < 300
