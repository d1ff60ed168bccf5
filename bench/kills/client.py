"""Requests to a server whose processes are killed, which are repeated until they are answered, or given up."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from aiohttp import (
    ClientConnectionError,
    ClientError,
    ClientHandlerType,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    TCPConnector,
)

_TIMEOUT = ClientTimeout(total=40)
_PATIENCE_S = 120
"""Longer than a killed request holds its key."""
_UNAVAILABLE = "backend unavailable"
_PAUSE_S = (0.1, 1.0)
_GIVE_UP = 0.25
"""The share of clients that do not come back after their connection was cut, like an app that was closed."""
_IMPATIENT = 0.6
"""The share of clients that do not wait until the key of a killed request is free."""
_WAIT_S = (5.0, 15.0)


class GivenUp(Exception):
    """The client does not learn the outcome of its request."""


class Refused(Exception):
    """The server has refused a request for a reason that the caller must know."""

    def __init__(self, error_type: str) -> None:
        super().__init__(error_type)
        self.error_type = error_type


@dataclass(slots=True)
class Observations:
    begun: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The requests by user and name, without their repeats."""
    answered: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The requests that were answered with 200."""
    cut: int = 0
    """Connections that were cut or refused. The process was killed, or had just been."""
    repeated: int = 0
    replayed: int = 0
    """Repeats that got the answer which a killed process had stored."""
    given_up: int = 0
    unavailable: int = 0
    """Answers 503, which ask to try again: so many processes start that PostgreSQL has no connection left."""
    waited: int = 0
    """Answers that a platform could not be asked, or that the first request still runs."""
    joined: list[tuple[str, str]] = field(default_factory=list)
    """The acknowledged members of share groups: the code, and the user."""
    refunded: list[str] = field(default_factory=list)
    """The payments with a card that were refunded at the platform."""
    disputed: dict[str, str] = field(default_factory=dict)
    """The payments with a card that were disputed at the platform, and the status of the dispute."""
    misses: list[str] = field(default_factory=list)
    """Answers that no kill explains."""


def open_http() -> ClientSession:
    """Return a client without kept connections: a repeat reaches whichever process accepts it."""
    connector = TCPConnector(limit=0, force_close=True)
    return ClientSession(connector=connector, timeout=_TIMEOUT, middlewares=(_send_once,))


async def _send_once(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Send a request. aiohttp repeats a GET by itself after these errors, with a token that is used already."""
    try:
        return await handler(request)
    except ClientConnectionError as error:
        raise ClientError(str(error)) from error


@dataclass(frozen=True, slots=True)
class Client:
    """Sends requests to the server, and does what users do at the platforms."""

    http: ClientSession
    url: str
    observations: Observations
    random: random.Random

    async def ask(
        self,
        name: str,
        method: str,
        path: str,
        *,
        headers: Callable[[], Mapping[str, str]],
        json: Any = None,
        uid: str = "",
    ) -> dict[str, Any]:
        """Return the answer to a request, which is repeated with its key. Raises `GivenUp` and `Refused`.

        `headers` returns those that prove who calls, for one attempt: a server token may be valid for one call.
        """
        self.observations.begun[uid, name] += 1
        key = {"Idempotency-Key": uuid4().hex}
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while (
                    answer := await self._ask_once(name, method, path, headers={**key, **headers()}, json=json)
                ) is None:
                    self.observations.repeated += 1
        except TimeoutError:
            self.observations.given_up += 1
            raise GivenUp from None
        self.observations.answered[uid, name] += 1
        return answer

    async def _ask_once(self, name: str, method: str, path: str, **options: Any) -> dict[str, Any] | None:
        """Return the answer, or `None` if the request is to be repeated, after a pause."""
        seen = self.observations
        try:
            async with self.http.request(method, self.url + path, **options) as response:
                status = response.status
                seen.replayed += response.headers.get("Idempotent-Replayed") == "true"
                answer: dict[str, Any] = await response.json()
        except (ClientError, TimeoutError, ValueError):
            seen.cut += 1
            self._give_up_maybe(_GIVE_UP)
            await asyncio.sleep(self.random.uniform(*_PAUSE_S))
            return None
        if status == 200:
            return answer
        error_type = answer["error"]["error_type"]
        if status == 503:
            seen.unavailable += 1
            await asyncio.sleep(self.random.uniform(*_PAUSE_S))
            return None
        if status >= 500:
            seen.misses.append(f"{name}: {status} {answer['error']['message']}")
            raise GivenUp
        if error_type == _UNAVAILABLE:
            seen.waited += 1
            await asyncio.sleep(1)
            return None
        if status == 409:
            seen.waited += 1
            self._give_up_maybe(_IMPATIENT)
            await asyncio.sleep(self.random.uniform(*_WAIT_S))
            return None
        raise Refused(error_type)

    def _give_up_maybe(self, share: float) -> None:
        if self.random.random() < share:
            self.observations.given_up += 1
            raise GivenUp

    async def act(self, url: str, **options: Any) -> dict[str, Any]:
        """Do something at a platform, which is not killed. Return its answer, if that is JSON."""
        async with self.http.post(url, allow_redirects=False, **options) as response:
            if response.status >= 400:
                raise GivenUp
            return await response.json() if response.content_type == "application/json" else {}

    async def see(self, url: str, **query: str) -> dict[str, Any]:
        """Return what a platform shows, which is not killed."""
        async with self.http.get(url, params=query, raise_for_status=True) as response:
            return await response.json()
