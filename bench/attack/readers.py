"""Attacks by readers that ask for an answer and then read nothing of it."""

import asyncio
from contextlib import suppress

from bench.attack.attacker import Attacker, Finished, together
from bench.attack.connections import Connection

_RECEIVE_BYTES = 4096
_READERS_OF_A_STREAM = 16
"""More than that the server refuses by default."""
_BATCH = 5
"""Few at once: what is attacked is how readers are kept, not how they are let in."""
_ANSWER_S = 5.0
_LOOK_AGAIN_S = 0.02
_GIVEN_BACK_S = 15
"""The server returns free pages every 10 s."""
_MADE_TOGETHER = 8
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_STREAM_ID = b"x-service-stream-id: "


async def finish_speech(attacker: Attacker, strategy: str, count: int) -> None:
    """Preparation: `count` finished streams of speech, each of another user as far as there are enough."""
    at_work = asyncio.Semaphore(_MADE_TOGETHER)

    async def one(number: int) -> None:
        async with at_work:
            connection = await attacker.connect()
            if connection is None or not await connection.send(attacker.speak(strategy, number)):
                return
            answer = await connection.receive_until(_LAST_CHUNK)
            connection.close()
            head = answer.partition(b"\r\n\r\n")[0] + b"\r\n"
            _, found, rest = head.lower().partition(_STREAM_ID)
            if found:
                stream_id = rest.partition(b"\r\n")[0].decode()
                attacker.finished.append(Finished(attacker.token(number), stream_id, len(answer) - len(head)))

    await together(count, one)
    attacker.connections.clear()


async def finish_speech_and_resume(attacker: Attacker, strategy: str, *, streams: int, readers: int) -> None:
    """Preparation: finished streams, and one wave of the readers that the attack has.

    Arenas of small objects keep the size of the largest crowd. The attack after it shows whether more is kept.
    """
    await finish_speech(attacker, strategy, streams)
    await slow_resumes(attacker, readers)
    attacker.close()
    attacker.connections.clear()
    await asyncio.sleep(_GIVEN_BACK_S)


async def slow_resumes(attacker: Attacker, readers: int) -> None:
    """Resume the finished streams, up to 16 readers each, and read nothing."""
    streams = attacker.finished
    requests = [
        attacker.head("GET", f"/bp/ai/stream/{stream.stream_id}", token=stream.token) + b"\r\n"
        for stream in streams
        for _ in range(_READERS_OF_A_STREAM)
    ]
    await _read_nothing(attacker, requests[:readers])


async def slow_live(attacker: Attacker, readers: int) -> None:
    """Ask for new answers, and read nothing."""
    speech = attacker.strategies.speech
    await _read_nothing(attacker, [attacker.speak(speech, number) for number in range(readers)])


async def _read_nothing(attacker: Attacker, requests: list[bytes]) -> None:
    async def one(request: bytes) -> None:
        connection = await attacker.connect(receive_bytes=_RECEIVE_BYTES)
        if connection is not None and await connection.send(request):
            await _answered(connection)

    for begin in range(0, len(requests), _BATCH):
        async with asyncio.TaskGroup() as tasks:
            for request in requests[begin : begin + _BATCH]:
                tasks.create_task(one(request))
    await asyncio.sleep(attacker.for_s)


async def _answered(connection: Connection) -> None:
    """Wait for the status line, without reading it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_ANSWER_S):
            while connection.is_open and not connection.status:
                await asyncio.sleep(_LOOK_AGAIN_S)
                connection.look()
