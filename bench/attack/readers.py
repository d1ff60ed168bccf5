"""Attacks by readers that request a stream and then do not read the response."""

import asyncio
from contextlib import suppress

from bench.attack.attacker import LAST_CHUNK, Attacker, Finished, together
from bench.attack.connections import Connection

_RECEIVE_BYTES = 4096
_READERS_PER_STREAM = 16
"""The server's default limit."""
_READERS_OF_AN_ADDRESS = 900
"""The server's default limit of connections per address is 1,000."""
_BATCH = 5
"""Few at once, because the attack is on the cost of idle readers, not on admission."""
_ANSWER_S = 5.0
_POLL_S = 0.02
_MEMORY_RETURN_S = 15
"""The server returns free memory to the system every 10 s."""
_PREPARED_AT_ONCE = 8
_STREAM_ID = b"x-service-stream-id: "


async def finish_speech(attacker: Attacker, strategy: str, count: int) -> None:
    """Preparation: finish `count` speech streams, distributed over the users."""
    limit = asyncio.Semaphore(_PREPARED_AT_ONCE)

    async def worker(number: int) -> None:
        async with limit:
            connection = await attacker.connect()
            if connection is None or not await connection.send(attacker.speak(strategy, number)):
                return
            answer = await connection.receive_until(LAST_CHUNK)
            connection.close()
            head = answer.partition(b"\r\n\r\n")[0] + b"\r\n"
            _, found, rest = head.lower().partition(_STREAM_ID)
            if found:
                stream_id = rest.partition(b"\r\n")[0].decode()
                attacker.finished.append(Finished(attacker.token(number), stream_id, len(answer) - len(head)))

    await together(count, worker)
    attacker.connections.clear()


async def finish_speech_and_resume(attacker: Attacker, strategy: str, *, streams: int, readers: int) -> None:
    """Preparation: finish speech streams, and connect the readers of the attack once.

    The allocator keeps the arenas of small objects that the largest number of readers needed. With these readers
    already counted before the attack, growth during the attack is memory that the server fails to release.
    """
    await finish_speech(attacker, strategy, streams)
    await slow_resumes(attacker, readers)
    attacker.close()
    attacker.connections.clear()
    await asyncio.sleep(_MEMORY_RETURN_S)


async def slow_resumes(attacker: Attacker, readers: int) -> None:
    """Resume the finished streams with up to 16 readers each, and read nothing."""
    streams = attacker.finished
    requests = [
        attacker.head("GET", f"/bp/ai/stream/{stream.stream_id}", token=stream.token) + b"\r\n"
        for stream in streams
        for _ in range(_READERS_PER_STREAM)
    ]
    await _read_nothing(attacker, requests[:readers])


async def slow_live(attacker: Attacker, readers: int) -> None:
    """Request new speech streams, and read nothing."""
    speech = attacker.strategies.speech
    await _read_nothing(attacker, [attacker.speak(speech, number) for number in range(readers)])


async def _read_nothing(attacker: Attacker, requests: list[bytes]) -> None:
    async def worker(index: int) -> None:
        address = index // _READERS_OF_AN_ADDRESS
        connection = await attacker.connect(address=address, receive_bytes=_RECEIVE_BYTES)
        if connection is not None and await connection.send(requests[index]):
            await _wait_for_status(connection)

    for begin in range(0, len(requests), _BATCH):
        async with asyncio.TaskGroup() as tasks:
            for index in range(begin, min(begin + _BATCH, len(requests))):
                tasks.create_task(worker(index))
    await asyncio.sleep(attacker.for_s)


async def _wait_for_status(connection: Connection) -> None:
    """Wait until the status line has arrived, without reading it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_ANSWER_S):
            while connection.is_open and not connection.status:
                await asyncio.sleep(_POLL_S)
                connection.update()
