"""Speech is spoken by its vendor, and waiting streams are answered, while Valkey is unavailable."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from app.settings import Settings
from tests.app.ai.conftest import Talk
from tests.app.ai.speech.cached_speech import calls, said, spoken, tts, voice
from tests.app.valkey_proxy import ValkeyProxy, valkey_proxy_to
from tests.peers.sse_client import all_events
from tests.running.another_server import another_server
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running


@asynccontextmanager
async def behind_a_proxy(talk: Talk, settings: Settings, folder: Path) -> AsyncIterator[tuple[Talk, ValkeyProxy]]:
    """Yield the same user on a server whose Valkey can be made unavailable."""
    async with (
        valkey_proxy_to(settings.redis_url, folder / "v.sock") as valkey_proxy,
        another_server(replace(settings, redis_url=valkey_proxy.url)) as other,
    ):
        yield replace(talk, server=other), valkey_proxy


async def test_without_valkey_every_request_is_spoken_by_its_vendor(
    talk: Talk, server: Server, sandbox: Running, settings: Settings, tmp_path: Path
) -> None:
    await voice(server, sandbox)
    async with behind_a_proxy(talk, settings, tmp_path) as (there, valkey_proxy):
        first = await spoken(there)
        await valkey_proxy.stop()
        assert said(await spoken(there)) == said(first)
        assert said(await spoken(there)) == said(first)
        assert calls(sandbox) == 3
        await valkey_proxy.start()
        assert said(await spoken(there)) == said(first)
        assert calls(sandbox) == 3


async def test_waiting_streams_are_answered_if_valkey_becomes_unavailable(
    talk: Talk, server: Server, sandbox: Running, settings: Settings, tmp_path: Path
) -> None:
    await voice(server, sandbox, key=key_of(pace_ms=20))
    async with behind_a_proxy(talk, settings, tmp_path) as (there, valkey_proxy), AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(tts(there)) for _ in range(3)]
        await sandbox.bill.wait(lambda entry: entry.outputs > 0)
        await valkey_proxy.stop()
        first, *others = [await all_events(stream) for stream in streams]
    assert first[-1].name == "end"
    assert all(said(seen) == said(first) for seen in others)
