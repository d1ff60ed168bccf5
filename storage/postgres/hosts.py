"""Connections to a database whose URL names several hosts, such as a primary and its standbys."""

from typing import Any
from urllib.parse import urlsplit

import asyncpg

_HOST_S = 3
"""How long each of several hosts may take to accept a connection. asyncpg has one limit for all of them together,
so it would never try the second one if the first did not answer, as after a loss of power."""
_NEXT = (OSError, TimeoutError, asyncpg.CannotConnectNowError, asyncpg.TargetServerAttributeNotMatched)


class Hosts:
    """The hosts of a URL in the order in which they are tried: the one that was used last is the first."""

    def __init__(self, dsn: str) -> None:
        parts = urlsplit(dsn)
        login, at, hosts = parts.netloc.rpartition("@")
        self._urls = [parts._replace(netloc=f"{login}{at}{host}").geturl() for host in hosts.split(",")]
        if len(self._urls) == 1:
            self._urls = [dsn]

    async def connect(self, *_: object, **options: Any) -> asyncpg.Connection:
        """Connect to the first host that can be used. `options` are those of `asyncpg.connect`."""
        if len(self._urls) == 1:
            return await asyncpg.connect(self._urls[0], **options)
        faults: list[Exception] = []
        for url in tuple(self._urls):
            try:
                conn = await asyncpg.connect(url, **{**options, "timeout": _HOST_S})
            except _NEXT as error:
                faults.append(error)
            else:
                self._urls.sort(key=lambda other: other != url)
                return conn
        raise faults[0]
