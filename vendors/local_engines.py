"""Polls the local engines process for missing engines, so that strategies that need them are rejected early."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import structlog

from streams.tasks import background
from vendors.errors import VendorError
from vendors.http.outgoing import Outgoing
from vendors.http.transport import VendorHttp

log = structlog.get_logger()

_POLL_EVERY_S = 10
_RETRY_AFTER_S = 1
_TIMEOUT_S = 5


class LocalEngines:
    """The last reported state of the local engines. Until the first report no engine counts as missing."""

    def __init__(self, http: VendorHttp, base_url: str) -> None:
        self.missing: Mapping[str, str] = {}
        """Maps the name of a missing engine to an instruction how to install it."""
        self._http = http
        self._url = f"{base_url.removesuffix('/v1')}/health"

    async def refresh(self) -> None:
        call = Outgoing("local", self._url, method="GET", connect_s=_TIMEOUT_S)
        async with asyncio.timeout(_TIMEOUT_S), self._http.stream(call) as response:
            state = await response.json()
        self.missing = {engine: str(why) for engine, why in state["engines"].items() if why is not None}

    async def poll(self) -> None:
        while True:
            try:
                await self.refresh()
                wait_s = _POLL_EVERY_S
            except (VendorError, TimeoutError, LookupError, AttributeError) as error:
                log.debug("local_engines.unreachable", error=str(error))
                wait_s = _RETRY_AFTER_S
            await asyncio.sleep(wait_s)


@asynccontextmanager
async def open_local_engines(http: VendorHttp, base_url: str | None) -> AsyncIterator[LocalEngines]:
    """Poll the local engines process at `base_url` in the background. If it is `None`, do not poll."""
    engines = LocalEngines(http, base_url or "")
    if base_url is None:
        yield engines
        return
    async with background(engines.poll()):
        yield engines
