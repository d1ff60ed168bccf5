"""Which processes live: each says so every ten seconds, and how many streams of each app it has."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress

import structlog

from storage.redis import Valkey, map_errors
from streams.tasks import background, stopping
from streams.wire.codec import dumps, loads
from streams.wire.errors import StoreError

log = structlog.get_logger()

EVERY_S = 10
VOID_AFTER_S = 30
_FORGOTTEN_AFTER_S = 3600
_GOODBYE_S = 1


class Heartbeat:
    """This process's sign of life, and what it knows of the others'."""

    def __init__(
        self,
        valkey: Valkey,
        process: str,
        streams: Callable[[], Mapping[str, int]],
        *,
        void_after_s: float = VOID_AFTER_S,
    ) -> None:
        self.process = process
        self.elsewhere: Counter[str] = Counter()
        """Streams by app in all other processes, as they last told."""
        self._valkey = valkey
        self._streams = streams
        self._void_after_s = void_after_s
        self._keys = [valkey.key("processes", "seen"), valkey.key("processes", "told")]
        self._failed_at = float("-inf")

    async def beat(self) -> None:
        own = Counter(self._streams())
        void_ms, forgotten_ms = round(self._void_after_s * 1000), _FORGOTTEN_AFTER_S * 1000
        args: list[str | bytes | int] = [self.process, dumps(dict(own)), void_ms, forgotten_ms]
        with map_errors():
            told = await self._valkey.run("beat", keys=self._keys, args=args)
        self.elsewhere = sum((Counter(loads(one)) for one in told if one), Counter()) - own

    async def run(self) -> None:
        """Beat until cancelled."""
        while not stopping():
            try:
                await self.beat()
            except StoreError as error:
                self._failed_at = time.monotonic()
                log.debug("heartbeat.failed", error=str(error))
            if not stopping():
                await asyncio.sleep(EVERY_S)

    async def dead(self, processes: Collection[str]) -> frozenset[str]:
        """Those of `processes` that have not been heard of for 30 s.

        None is called dead until Valkey has answered for as long: after a restart of it, or behind a broken line,
        the silence may be Valkey's own.
        """
        others = sorted(set(processes) - {self.process, ""})
        if not others or time.monotonic() - self._failed_at < self._void_after_s:
            return frozenset()
        with map_errors():
            async with self._valkey.client.pipeline(transaction=False) as pipe:
                pipe.time()
                pipe.zmscore(self._keys[0], others)
                pipe.info("server")
                (seconds, microseconds), seen, server = await pipe.execute()
        if server["uptime_in_seconds"] < self._void_after_s:
            return frozenset()
        void = seconds * 1000 + microseconds // 1000 - self._void_after_s * 1000
        return frozenset(other for other, at in zip(others, seen, strict=True) if at is None or at <= void)

    async def stop(self) -> None:
        """Say goodbye: what this process still holds is void at once."""
        with suppress(StoreError, TimeoutError), map_errors():
            async with asyncio.timeout(_GOODBYE_S):
                await self._valkey.client.zrem(self._keys[0], self.process)


@asynccontextmanager
async def open_heartbeat(
    valkey: Valkey, process: str, streams: Callable[[], Mapping[str, int]]
) -> AsyncIterator[Heartbeat]:
    heartbeat = Heartbeat(valkey, process, streams)
    async with background(heartbeat.run()):
        yield heartbeat
    await heartbeat.stop()
