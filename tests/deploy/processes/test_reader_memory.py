"""Clients that do not read cost a process bounded memory, which it returns afterwards."""

import asyncio
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from app.services import Services
from app.settings import Settings
from storage.operators.audit import COMMAND
from streams.wire.codec import dumps
from tests.app.ai.conftest import vendor
from tests.deploy.callers import Caller, callers
from tests.deploy.processes.stalled_readers import ServerProcess, http, server_process, settings, stalled
from tests.peers.vendor import Vendor
from tests.waiting import until
from vendors.sandbox.server import listening

__all__ = ["http", "settings", "vendor"]

KIB, MIB = 1024, 1024 * 1024
MAX_BYTES = 256 * KIB
"""The memory that a reader may use in addition to the log."""
READERS_PER_STREAM = 15
WAIT_S = 30
"""How long a process may keep the memory of readers that have disconnected, in seconds."""
LEAVERS = 20
UNREAD = 20
MEMORY_RETURN_S = 15
"""A process returns free memory to the system every 10 s."""
RETURNED_RATIOS = {"malloc": 1.1, "pymalloc": 1.5}
"""By the value of `PYTHONMALLOC`: the highest allowed ratio of the memory without event logs after a wave of
readers to that before the first. CPython's own allocator (`pymalloc`, the default) keeps arenas."""
LATER_WAVES_RATIO = 1.05
"""The same ratio for the last wave, relative to the memory after the first."""
SPOKEN_CHARACTERS = 1_300
"""As WAV with 24,000 samples a second: 5.5 MiB of events."""


async def configure(services: Services, vendor: Vendor, **limits: Any) -> None:
    """The conversation strategies `wide`, whose answer is 1 MiB of text, and `wider`, whose answer is 3 MiB."""
    put = services.configs.put
    account = {"platform": "vendor_b_llm", "base_url": vendor.url, "api_key": "sk-test"}
    await put("default", "vendor_accounts", "text", account, author="test", origin=COMMAND)
    for name, kib in (("wide", 1023), ("wider", 3000)):
        chat = {"chat": {"account": "text", "model": f"wide:{kib}"}}
        await put("default", "conversation", name, chat, author="test", origin=COMMAND)
    rates = {"signup": {"count": 10**6, "per_s": 1}}
    await put("default", "limits", "default", {"rates": rates, **limits}, author="test", origin=COMMAND)


async def configure_speech(services: Services, sandbox_url: str) -> None:
    put = services.configs.put
    account = {"platform": "vendor_b_audio", "base_url": f"{sandbox_url}/openai/v1", "api_key": "sandbox"}
    await put("default", "vendor_accounts", "voice", account, author="test", origin=COMMAND)
    value = {"account": "voice", "model": "tts-1", "voice": "alloy", "audio_format": "wav"}
    await put("default", "speech", "voice", value, author="test", origin=COMMAND)


async def answered(caller: Caller) -> None:
    """Read a conversation's answer to its end."""
    response = await caller.say("Tell me", "wide")
    assert response.status == 200, await response.text()
    assert len(await response.read()) > MIB


async def spoken(caller: Caller) -> None:
    """Read a text-to-speech answer to its end."""
    body = {"text": "speak " * (SPOKEN_CHARACTERS // 6), "strategies": ["voice"]}
    async with caller.http.post(f"{caller.url}/bp/ai/audio/tts", json=body, headers=caller.headers) as response:
        caller.stream_id = response.headers["X-Service-Stream-Id"]
        read = await response.read()
    assert b"event: end\n" in read[-4096:]
    assert len(read) > 4 * MIB


async def a_reader_costs(server: ServerProcess, port: int, talking: list[Caller]) -> float:
    """Return the memory in bytes per reader that reads nothing, of the process and of the kernel's send buffers."""
    before = server.rss_bytes
    with stalled(port) as readers:
        for caller in talking:
            await asyncio.gather(*(readers.get(caller, caller.stream_id) for _ in range(READERS_PER_STREAM)))
        unread = unread_bytes(port)
        assert unread > 0, "the kernel has accepted nothing"
        return (server.rss_bytes - before + unread) / len(readers.sockets)


def unread_bytes(port: int) -> int:
    """Return how much the kernel holds of what the server at `port` has sent and no client has received."""
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    own = (fields for fields in sockets if int(fields[1].partition(":")[2], 16) == port)
    return sum(int(fields[4].partition(":")[0], 16) for fields in own)


async def test_stalled_readers_of_finished_answers_cost_little_beside_the_log_and_in_another_process(
    settings: Settings, services: Services, vendor: Vendor, http: ClientSession
) -> None:
    await configure(services, vendor)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    elsewhere = replace(settings, port=port, public_url=f"http://127.0.0.1:{port}")
    async with server_process(settings, http) as server, server_process(elsewhere, http) as other:
        talking = await callers(http, settings.public_url, 7)
        for caller in talking:
            await answered(caller)
        assert await a_reader_costs(server, settings.port, talking) <= MAX_BYTES
        assert await a_reader_costs(other, port, talking) <= MAX_BYTES


@pytest.mark.soak
async def test_stalled_readers_of_spoken_answers_cost_little_beside_the_log(
    settings: Settings, services: Services, vendor: Vendor, http: ClientSession
) -> None:
    async with listening() as sandbox:
        await configure(services, vendor)
        await configure_speech(services, sandbox.url)
        async with server_process(settings, http) as server:
            talking = await callers(http, settings.public_url, 8)
            for caller in talking:
                await spoken(caller)
            assert await a_reader_costs(server, settings.port, talking) <= MAX_BYTES


@pytest.mark.timeout(120)
async def test_memory_of_stalled_answers_is_released(
    settings: Settings, services: Services, vendor: Vendor, http: ClientSession
) -> None:
    await configure(services, vendor, readable_s=1, resume_grace_s=0.2)
    body = {"strategies": ["wide"], "type": "text", "language_code": "en", "target_language_code": "en"}
    async with server_process(settings, http) as server:
        talking = await callers(http, settings.public_url, 15)
        await answered(talking[0])
        before = server.rss_bytes
        with stalled(settings.port) as readers:
            asking = [caller for caller in talking for _ in range(4)]
            await asyncio.gather(
                *(readers.post(c, "/bp/ai/conversation", dumps(body) + b"Tell me") for c in asking)
            )
            await until(lambda: logs_hold(server, len(asking) * MIB), within_s=40, every_s=0.2)
            most = server.rss_bytes
        await until(lambda: gives_back(server, before * 1.3), within_s=WAIT_S + 40, every_s=0.2)
        assert most > before * 1.5


@pytest.mark.timeout(180)
async def test_clients_that_do_not_read_a_large_history_cost_bounded_memory(
    settings: Settings, services: Services, vendor: Vendor, http: ClientSession, capsys: pytest.CaptureFixture[str]
) -> None:
    await configure(services, vendor, readable_s=0.1, answer_bytes=4 * MIB)
    async with server_process(settings, http) as server:
        [caller] = await callers(http, settings.public_url, 1)
        conversation_id = await long_history(caller)
        path = f"/bp/ai/conversation/query?conversation_id={conversation_id}&size=100"
        async with http.get(settings.public_url + path, headers=caller.headers) as response:
            assert len(await response.read()) > 2 * MIB
        before = server.rss_bytes
        for _ in range(LEAVERS):
            with stalled(settings.port) as reader:
                await reader.request(caller, path)
        left = server.rss_bytes
        with stalled(settings.port) as readers:
            for _ in range(UNREAD):
                await readers.request(caller, path, refused=True)
            held = server.rss_bytes
        with capsys.disabled():
            print(  # noqa: T201 - the figures of the report
                f"\nMiB: before {before / MIB:.0f}, after {LEAVERS} who left {left / MIB:.0f}, "
                f"with {UNREAD} unread {held / MIB:.0f}"
            )
        assert left - before < 24 * MIB
        assert held - before < 48 * MIB


async def long_history(caller: Caller) -> str:
    """Create a conversation with five records of 3 MiB each, and return its id."""
    conversation_id = ""
    for _ in range(5):
        params = {"strategies": ["wider"], "type": "text", "language_code": "en", "target_language_code": "en"}
        body = dumps({**params, "conversation_id": conversation_id}) + b"Tell me"
        url = f"{caller.url}/bp/ai/conversation"
        async with caller.http.post(url, data=body, headers=caller.headers) as response:
            assert b"event: end\n" in await response.read()
            conversation_id = response.headers["X-Service-Conversation-Id"]
    return conversation_id


async def logs_hold(server: ServerProcess, least_bytes: int) -> bool:
    return await server.metric("parley_logs_bytes") >= least_bytes


async def gives_back(server: ServerProcess, max_bytes: float) -> bool:
    """Return whether all streams have ended and the process has returned their memory."""
    names = ("parley_streams_live", "parley_finished_logs_bytes")
    return not any([await server.metric(name) for name in names]) and server.rss_bytes <= max_bytes


async def without_event_logs(server: ServerProcess) -> float:
    """Return the resident bytes without the event logs of finished streams."""
    return server.rss_bytes - await server.metric("parley_finished_logs_bytes")


async def wave_of_readers(server: ServerProcess, port: int, talking: list[Caller]) -> float:
    """Connect `READERS_PER_STREAM` readers of each stream that read nothing, then disconnect them.

    Returns the memory of the process, without event logs, while all of them were connected.
    """
    others = await server.metric("parley_connections")
    with stalled(port) as readers:
        for caller in talking:
            await asyncio.gather(*(readers.get(caller, caller.stream_id) for _ in range(READERS_PER_STREAM)))
        held = await without_event_logs(server)

    async def all_left() -> bool:
        return await server.metric("parley_connections") <= others

    await until(all_left, within_s=40, every_s=0.2)
    return held


@pytest.mark.soak
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("allocator", "streams", "waves"),
    [
        ("malloc", 30, 2),
        ("malloc", 134, 2),
        ("pymalloc", 134, 2),
    ],
)
async def test_memory_of_stalled_readers_is_released_while_their_logs_are_kept(
    settings: Settings,
    services: Services,
    vendor: Vendor,
    http: ClientSession,
    capsys: pytest.CaptureFixture[str],
    *,
    allocator: str,
    streams: int,
    waves: int,
) -> None:
    """The process is fresh, so its memory before the first wave is the baseline."""
    await configure(services, vendor, send_timeout_s=300, readable_s=600)
    environment = {"PARLEY_CONNECTIONS_PER_ADDRESS": "10000", "PYTHONMALLOC": allocator}
    async with server_process(settings, http, **environment) as server:
        talking = await callers(http, settings.public_url, streams)
        for caller in talking:
            await answered(caller)
        await asyncio.sleep(MEMORY_RETURN_S)  # The baseline is the memory after free memory was returned.
        kept, before = await server.metric("parley_finished_logs_bytes"), await without_event_logs(server)
        assert kept > streams * MIB
        most, after = 0.0, []

        async def has_returned() -> bool:
            return await without_event_logs(server) <= before * RETURNED_RATIOS[allocator]

        for _ in range(waves):
            most = max(most, await wave_of_readers(server, settings.port, talking))
            with suppress(AssertionError):  # The failure message shows the remaining figures.
                await until(has_returned, within_s=WAIT_S, every_s=0.2)
            after.append(await without_event_logs(server))
        assert await server.metric("parley_finished_logs_bytes") == kept
    readers = streams * READERS_PER_STREAM
    with capsys.disabled():
        print(  # noqa: T201 - the figures of the report
            f"\n{allocator}, MiB without {kept / MIB:.0f} of event logs: {before / MIB:.1f}; "
            f"{readers} stalled readers {most / MIB:.1f} ({(most - before) / readers / KIB:.1f} KiB each); "
            "after each wave: " + ", ".join(f"{size / MIB:.1f} ({size / before - 1:+.1%})" for size in after)
        )
    assert (most - before) / readers <= MAX_BYTES
    assert max(after) <= before * RETURNED_RATIOS[allocator]
    assert after[-1] <= after[0] * LATER_WAVES_RATIO
