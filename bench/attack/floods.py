"""Attacks with many connections that are kept open, or reset as soon as they are made."""

import asyncio

from bench.attack.attacker import LAST_CHUNK, Attacker, chunk, for_at_most, together
from bench.attack.connections import Connection

_FROM_ONE_ADDRESS = 1_500
_PER_ADDRESS = 900
"""Below the limit per address, so that connections from several addresses reach the limit of the process."""
_MAX_ADDRESSES = 6
_BEYOND = 200
"""Connections that are attempted beyond a limit."""
_BATCH = 20
_IDLE_S = 85.0
_VICTIMS = 40
_VICTIM_S = 30.0
_SHOWN_BYTES = 200
_RESETS = 20_000
_RESET_WORKERS = 16
_STREAM_RESETS = 2_000
_WHOLE_EVERY = 20
"""One upload in so many is complete."""
_PAUSE_S = 0.005


async def idle_connections(attacker: Attacker) -> None:
    """Open connections from one address that send one request and then stay idle, beyond the idle timeout."""
    await _open_and_keep(attacker, _FROM_ONE_ADDRESS, address=0)
    await asyncio.sleep(_IDLE_S)


async def exhausted_connections(attacker: Attacker) -> None:
    """Open as many connections as the server's descriptors allow; then 40 other users start a conversation.

    The connections of these users are opened first, so that only the server's calls to its vendor need new
    descriptors.
    """
    victims: list[Connection] = []
    for _ in range(_VICTIMS):
        if (connection := await attacker.connect(address=_MAX_ADDRESSES)) is not None:
            await _make_request(attacker, connection)
            victims.append(connection)
    remaining = attacker.descriptors() + _BEYOND
    for address in range(_MAX_ADDRESSES if attacker.many_addresses else 1):
        count = min(remaining, _PER_ADDRESS)
        await _open_and_keep(attacker, count, address=address)
        remaining -= count

    async def worker(number: int) -> None:
        connection, complete = victims[number], attacker.upload(number, kind="text") + chunk(b"Hello.") + chunk(b"")
        answer = b"no complete answer in time"
        try:
            await connection.send(complete)
            answer = await connection.receive_until(LAST_CHUNK)
        finally:
            if b"\nevent: end\n" not in answer:
                attacker.victims_failed.append(answer[-_SHOWN_BYTES:].decode(errors="replace") or "closed")

    await for_at_most(_VICTIM_S, together(len(victims), worker))


async def _open_and_keep(attacker: Attacker, count: int, *, address: int) -> None:
    async def worker(number: int) -> None:
        if (connection := await attacker.connect(address=address)) is not None:
            await _make_request(attacker, connection)

    for _ in range(0, count, _BATCH):
        await together(_BATCH, worker)
        if attacker.refused.total() > _BEYOND:
            return


async def _make_request(attacker: Attacker, connection: Connection) -> None:
    """Make one request, so that the server treats the connection as an idle keep-alive connection."""
    await connection.send(attacker.head("GET", "/healthz") + b"\r\n")
    await for_at_most(2.0, _receive_once(connection))


async def _receive_once(connection: Connection) -> None:
    await connection.receive()


async def reset_heads(attacker: Attacker) -> None:
    """Connect, send half a head and reset the connection, at most 20,000 times."""
    half = attacker.head("GET", "/healthz")[:-10]

    async def worker(number: int) -> None:
        for _ in range(_RESETS // _RESET_WORKERS):
            if (connection := await attacker.connect()) is not None:
                await connection.send(half)
                connection.reset()

    await for_at_most(attacker.for_s, together(_RESET_WORKERS, worker))


async def reset_streams(attacker: Attacker) -> None:
    """Begin streams and reset the connections at the first bytes of the response, mostly during the upload."""
    complete = chunk(b"Hello.") + chunk(b"")

    async def worker(number: int) -> None:
        for turn in range(_STREAM_RESETS // _RESET_WORKERS):
            if (connection := await attacker.connect()) is None:
                continue
            upload = attacker.upload(number + turn, kind="text")
            await connection.send(upload + (complete if turn % _WHOLE_EVERY == 0 else b""))
            await connection.receive()
            connection.reset()
            await asyncio.sleep(_PAUSE_S)

    await for_at_most(attacker.for_s, together(_RESET_WORKERS, worker))
