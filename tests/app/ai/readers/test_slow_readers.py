"""A client that does not read delays only its own stream and costs bounded memory."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from actors.runtime.actor import Actor
from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.peers.sse_client import all_events
from tests.running.servers import Server
from tests.waiting import until

LAG_BYTES = 64 * 1024
LOG_BYTES = 256 * 1024
ONE_READ_BYTES = 512 * 1024
"""The number of events in transit when the play begins to wait."""
WORDS = 150_000


@contextmanager
def asking(talk: Talk, *strategies: str) -> Iterator[socket.socket]:
    """A client that sends a request and never reads. Its receive buffer is minimal."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", talk.server.services.settings.port))
        body = talk.params(*strategies) + b"Tell me everything"
        head = (
            "POST /bp/ai/conversation HTTP/1.1\r\nHost: parley\r\n"
            f"X-Service-Session-Token: {talk.token}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        client.sendall(head.encode() + body)
        yield client


async def limited(server: Server, *, send_timeout_s: float, grace_s: float) -> None:
    limits = {"lag_bytes": LAG_BYTES, "log_bytes": LOG_BYTES, "answer_bytes": 64 * 1024 * 1024}
    value = {**limits, "send_timeout_s": send_timeout_s, "resume_grace_s": grace_s}
    await server.services.configs.put("default", "limits", "default", value, author="test", origin=COMMAND)


async def lagging(server: Server) -> Actor:
    """Return the stream once it waits for its reader."""
    supervisor = server.services.supervisor
    await until(lambda: any(actor.log.lag > LAG_BYTES for actor in supervisor.live()), within_s=20)
    [actor] = supervisor.live()
    return actor


async def test_a_reader_that_never_reads_costs_bounded_memory_and_delays_no_other(
    talk: Talk, strategy, server: Server
) -> None:
    await limited(server, send_timeout_s=60, grace_s=0.2)
    await strategy("endless", f"many:{WORDS}")
    await strategy("quick", "say:Here I am")
    with asking(talk, "endless"):
        actor = await lagging(server)
        said = actor.log.size_bytes
        other = Talk(server, *(await server.login()))
        began = time.monotonic()
        for _ in range(5):
            assert (await other.turn("Hello", "quick"))[-1].name == "end"
        assert time.monotonic() - began < 2
        assert actor.log.size_bytes == said  # The play waits for the reader.
        assert actor.log.lag <= LAG_BYTES + ONE_READ_BYTES
        assert actor.log.kept_bytes <= LOG_BYTES + ONE_READ_BYTES
    await asyncio.wait_for(server.services.supervisor.idle(), 20)


async def test_a_reader_that_never_reads_is_dropped_and_the_stream_continues(
    talk: Talk, strategy, server: Server
) -> None:
    await limited(server, send_timeout_s=3, grace_s=50)
    await strategy("much", f"many:{WORDS}")
    with asking(talk, "much") as client:
        actor = await lagging(server)
        await until(lambda: actor.log.closed, within_s=30)
        assert actor.readers == 0
        assert client.fileno() > 0
    path = f"/bp/ai/stream/{actor.stream_id}"
    async with talk.get(path) as answer:
        assert answer.status == 410  # The first events were dropped.
    async with talk.get(path, headers={"Last-Event-ID": str(actor.log.dropped)}) as answer:
        assert (await all_events(answer))[-1].name == "end"
