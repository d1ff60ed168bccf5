"""The calls of one caller: a refused session is renewed once, and what may be repeated is repeated."""

import asyncio
from typing import Any

from aiohttp import ClientResponse

from parley_client.backoff import Attempts, Backoff
from parley_client.errors import ParleyError
from parley_client.http import Caller, Http, Request, encoded, read_json

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

    async def json(self, request: Request) -> Any:
        """Send a request and return the JSON of its response. Raises `ParleyError`."""
        loop = asyncio.get_running_loop()
        attempts = Attempts(self.backoff)
        for left in reversed(range(_TRIES)):
            try:
                return await read_json(await self.open(request))
            except ParleyError as error:
                if not (left and request.repeatable and error.retryable):
                    raise
                delay = attempts.delay_s(loop.time(), within_s=self.backoff.begin_s, retry_after=error.retry_after)
                if delay is None:
                    raise
            await asyncio.sleep(delay)
        raise AssertionError("the last attempt returns or raises")

    async def get(self, path: str, **query: object) -> Any:
        return await self.json(Request(method="GET", path=path, query=query, repeatable=True))

    async def post(self, path: str, body: object = None, **options: Any) -> Any:
        """Send a POST request. `options` are fields of `Request`."""
        return await self.json(Request(method="POST", path=path, body=_body(body), **options))


def _body(body: object) -> bytes:
    return b"" if body is None else encoded(body)
