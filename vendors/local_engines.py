"""Which engines of this machine are missing, so that strategies on them are refused before they are tried."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import structlog

from streams.tasks import background
from vendors.errors import VendorError
from vendors.transport import Outgoing, VendorHttp

log = structlog.get_logger()

_ASK_EVERY_S = 10
_ASK_AGAIN_S = 1
_ANSWER_S = 5


class LocalEngines:
    """What the process of local engines last told; nothing is missing as long as it has told nothing."""

    def __init__(self, http: VendorHttp, base_url: str) -> None:
        self.missing: Mapping[str, str] = {}
        """Engine to what must be done to have it."""
        self._http = http
        self._url = f"{base_url.removesuffix('/v1')}/health"

    async def refresh(self) -> None:
        call = Outgoing("local", self._url, method="GET", connect_s=_ANSWER_S, repeatable=False)
        async with asyncio.timeout(_ANSWER_S), self._http.stream(call) as answer:
            told = await answer.json()
        self.missing = {engine: str(why) for engine, why in told["engines"].items() if why is not None}

    async def keep_asking(self) -> None:
        while True:
            try:
                await self.refresh()
                wait_s = _ASK_EVERY_S
            except (VendorError, TimeoutError, LookupError, AttributeError) as error:
                log.debug("local_engines.away", error=str(error))
                wait_s = _ASK_AGAIN_S
            await asyncio.sleep(wait_s)


@asynccontextmanager
async def open_local_engines(http: VendorHttp, base_url: str | None) -> AsyncIterator[LocalEngines]:
    """Ask the process at `base_url` again and again; without one nothing is asked."""
    engines = LocalEngines(http, base_url or "")
    if base_url is None:
        yield engines
        return
    async with background(engines.keep_asking()):
        yield engines
