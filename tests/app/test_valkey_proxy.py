"""The proxy of tests can be stopped at any time."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from tests.app.valkey_proxy import ValkeyProxy
from tests.waiting import passes


@pytest.mark.parametrize("after_passes", range(8))
async def test_proxy_stops_although_a_client_connects(tmp_path: Path, after_passes: int) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def connect() -> None:
        with suppress(OSError):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "proxy.sock")
            await reader.read()
            writer.close()

    proxy = ValkeyProxy(tmp_path / "proxy.sock", str(tmp_path / "store.sock"))
    async with await asyncio.start_unix_server(serve, tmp_path / "store.sock"), asyncio.TaskGroup() as tasks:
        await proxy.start()
        tasks.create_task(connect())
        await passes(after_passes)
        async with asyncio.timeout(10):
            await proxy.stop()
