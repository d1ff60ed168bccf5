"""Text to speech with the sandbox as its vendor, and the cached speech."""

from typing import Any

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import VOICES, account
from tests.peers.sse_client import SeenEvent, all_events
from tests.running.servers import Server
from vendors.sandbox.server import Running

TEXT = "Good morning to you all. How may I help you today?"


async def voice(
    server: Server, sandbox: Running, name: str = "one", *, key: str = "sandbox", cache: bool = True, **fields: Any
) -> None:
    """Create a strategy and its account. The vendor sends the times of mouth shapes."""
    await account(server, sandbox, name, "vendor_c", key)
    value = {"account": name, "need_viseme": True, "cache": cache, **VOICES["vendor_c"], **fields}
    await server.services.configs.put("default", "speech", name, value, author="test", origin=COMMAND)


def tts(talk: Talk, *strategies: str, text: str = TEXT, **params: Any):
    platform_params = {"platform_params": [{"platform": "vendor_c", **params}]} if params else {}
    return talk.post(
        "/bp/ai/audio/tts", json={"text": text, "strategies": strategies or ("one",), **platform_params}
    )


async def speak(talk: Talk, *strategies: str, **fields: Any) -> list[SeenEvent]:
    async with tts(talk, *strategies, **fields) as response:
        return await all_events(response)


async def spoken(talk: Talk, *strategies: str, **fields: Any) -> list[SeenEvent]:
    seen = await speak(talk, *strategies, **fields)
    assert seen[-1].name == "end", seen[-1]
    return seen


def calls(sandbox: Running) -> int:
    return len(list(sandbox.bill.since()))


async def only_key(server: Server, what: str) -> bytes:
    """Return the only key in Valkey whose name contains `what`.

    In a cluster, each server of the tests leaves hundreds of keys, so a scan in small steps would take seconds.
    """
    match = f"{server.services.settings.redis_prefix}*:{what}:*"
    (key,) = [key async for key in server.services.valkey.client.scan_iter(match, count=10_000)]
    return key


async def cached_files(server: Server) -> list[str]:
    """Return the keys of the stored files."""
    return sorted(await server.services.objects.keys("speech-cache/"))


def said(seen: list[SeenEvent]) -> list[tuple[str, Any]]:
    """Return the events of a stream without those that contain times or links."""
    return [(event.name, event.content) for event in seen if event.name in {"start", "viseme", "audio_chunk"}]
