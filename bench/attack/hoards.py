"""Attacks by connections: kept open in great number, or reset as soon as they are made."""

import asyncio

from bench.attack.attacker import Attacker, chunk, for_at_most, together
from bench.attack.connections import Connection

_FROM_ONE_ADDRESS = 1_500
_OF_AN_ADDRESS = 900
"""Below the limit of an address, so that several addresses reach the limit of the process."""
_MOST_ADDRESSES = 6
_BEYOND = 200
_BATCH = 20
_IDLE_S = 85.0
_VICTIMS = 40
_VICTIM_S = 30.0
_SHOWN_BYTES = 200
_RESETS = 20_000
_RESET_WORKERS = 16
_STREAM_RESETS = 2_000
_WHOLE_EVERY = 20
_PAUSE_S = 0.005
_LAST_CHUNK = b"\r\n0\r\n\r\n"


async def idle_connections(attacker: Attacker) -> None:
    """From one address, connections that send one request and then nothing, for longer than any should be kept."""
    await _hoard(attacker, _FROM_ONE_ADDRESS, address=0)
    await asyncio.sleep(_IDLE_S)


async def exhausted_connections(attacker: Attacker) -> None:
    """From several addresses, as many as the server's descriptors allow; then 40 other users ask for an answer.

    Their connections exist before, so only the server's own calls to its vendor need a new descriptor.
    """
    victims: list[Connection] = []
    for _ in range(_VICTIMS):
        if (connection := await attacker.connect(address=_MOST_ADDRESSES)) is not None:
            await _asked(attacker, connection)
            victims.append(connection)
    left = attacker.descriptors() + _BEYOND
    for address in range(_MOST_ADDRESSES if attacker.many_addresses else 1):
        count = min(left, _OF_AN_ADDRESS)
        await _hoard(attacker, count, address=address)
        left -= count

    async def one(number: int) -> None:
        connection, whole = victims[number], attacker.upload(number, kind="text") + chunk(b"Hello.") + chunk(b"")
        answer = b"no whole answer in time"
        try:
            await connection.send(whole)
            answer = await connection.receive_until(_LAST_CHUNK)
        finally:
            if b"\nevent: end\n" not in answer:
                attacker.victims_failed.append(answer[-_SHOWN_BYTES:].decode(errors="replace") or "closed")

    await for_at_most(_VICTIM_S, together(len(victims), one))


async def _hoard(attacker: Attacker, count: int, *, address: int) -> None:
    async def one(number: int) -> None:
        if (connection := await attacker.connect(address=address)) is not None:
            await _asked(attacker, connection)

    for _ in range(0, count, _BATCH):
        await together(_BATCH, one)
        if attacker.refused.total() > _BEYOND:
            return


async def _asked(attacker: Attacker, connection: Connection) -> None:
    """Make one request, so that the connection is a kept one."""
    await connection.send(attacker.head("GET", "/healthz") + b"\r\n")
    await for_at_most(2.0, _one_answer(connection))


async def _one_answer(connection: Connection) -> None:
    await connection.receive()


async def reset_heads(attacker: Attacker) -> None:
    """Connect, send half a head, reset; 20,000 times at most."""
    half = attacker.head("GET", "/healthz")[:-10]

    async def one(number: int) -> None:
        for _ in range(_RESETS // _RESET_WORKERS):
            if (connection := await attacker.connect()) is not None:
                await connection.send(half)
                connection.reset()

    await for_at_most(attacker.for_s, together(_RESET_WORKERS, one))


async def reset_streams(attacker: Attacker) -> None:
    """Begin streams and reset them at the first bytes of the answer, most of them in the middle of the upload."""
    whole = chunk(b"Hello.") + chunk(b"")

    async def one(number: int) -> None:
        for turn in range(_STREAM_RESETS // _RESET_WORKERS):
            if (connection := await attacker.connect()) is None:
                continue
            upload = attacker.upload(number + turn, kind="text")
            await connection.send(upload + (whole if turn % _WHOLE_EVERY == 0 else b""))
            await connection.receive()
            connection.reset()
            await asyncio.sleep(_PAUSE_S)

    await for_at_most(attacker.for_s, together(_RESET_WORKERS, one))
