"""The calls of one caller: a refused session is renewed once, and what may be repeated is repeated."""

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

from aiohttp import ClientResponse

from parley_client.backoff import Attempts, Backoff
from parley_client.errors import ParleyError
from parley_client.http import Caller, Http, Reply, Request, encoded, given, read_json

_TRIES = 3
INVALID_SESSION = "account.invalid_session"


class Calls:
    def __init__(self, http: Http, caller: Caller, backoff: Backoff) -> None:
        self.backoff = backoff
        self._http = http
        self._caller = caller

    async def open(self, request: Request) -> ClientResponse:
        """Send a request and return its response, which the caller closes. Raises `ParleyError`."""
        used = self._caller.session
        try:
            return await self._http.open(request, self._caller)
        except ParleyError as error:
            if error.error_type != INVALID_SESSION or not (request.renews and await self._caller.renew(used)):
                raise
        return await self._http.open(request, self._caller)

    async def json(self, request: Request, *, tries: float = _TRIES, within_s: float | None = None) -> Reply:
        """Send a request and return the JSON of its response. Raises `ParleyError`.

        A repeatable request is sent up to `tries` times `within_s`, by default `Backoff.begin_s`.
        """
        loop = asyncio.get_running_loop()
        attempts = Attempts(self.backoff)
        limit_s = self.backoff.begin_s if within_s is None else within_s
        while True:
            tries -= 1
            try:
                return await read_json(await self.open(request))
            except ParleyError as error:
                if not (tries and request.repeatable and error.retryable):
                    raise
                delay = attempts.delay_s(loop.time(), within_s=limit_s, retry_after=error.retry_after)
                if delay is None:
                    raise
            await asyncio.sleep(delay)

    async def get(self, path: str, **query: object) -> Reply:
        return await self.json(Request(method="GET", path=path, query=query, repeatable=True))

    async def post(self, path: str, body: Mapping[str, object] | None = None, **options: Any) -> Reply:
        """Send a POST request. `options` are fields of `Request`."""
        return await self.json(Request(method="POST", path=path, body=_body(body), **options))

    async def once(self, path: str, body: Mapping[str, object], **options: Any) -> Reply:
        """Send a POST request whose effect must not be repeated, to an endpoint that knows repeats by their key."""
        headers = {**options.pop("headers", {}), "Idempotency-Key": secrets.token_hex(16)}
        return await self.post(path, body, headers=headers, repeatable=True, **options)

    async def put(self, path: str, body: Mapping[str, object]) -> Reply:
        return await self.json(Request(method="PUT", path=path, body=_body(body)))

    async def delete(self, path: str) -> Reply:
        return await self.json(Request(method="DELETE", path=path))


def _body(parameters: Mapping[str, object] | None) -> bytes:
    return b"" if parameters is None else encoded(given(parameters))
