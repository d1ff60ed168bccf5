"""Attacks with request bodies: tiny chunks, chunk extensions, trailers, uploads that stop."""

import asyncio
from base64 import b64encode

from bench.attack.attacker import CHUNKED, LAST_CHUNK, Attacker, chunk, for_at_most, repeat, together

_PIECE_BYTES = 256 * 1024
"""The server's read size."""
_IDLE_UPLOADS = 200
_IDLE_S = 48.0
_APART_S = 0.01
"""Time between two uploads, because the attack is on the cost of stopped uploads, not on admission."""
_JSON_BYTES = 8 * 1024 * 1024
"""The server's limit for the body of an image task."""
_AUDIO_BYTES = 10 * 1024 * 1024
"""The server's limit for audio, after decoding."""
_FILE_BYTES = 20 * 1024 * 1024
"""The server's limit for an uploaded file."""


def _repeated(item: bytes) -> bytes:
    return item * (_PIECE_BYTES // len(item))


_ONE_BYTE_CHUNKS = _repeated(chunk(b"A"))


async def tiny_chunks(attacker: Attacker, connections: int) -> None:
    """Send audio in one-byte chunks as one user."""
    await repeat(attacker, connections, begin=[attacker.upload(0)], then=[_ONE_BYTE_CHUNKS])


async def tiny_json(attacker: Attacker) -> None:
    """Send a JSON body in one-byte chunks to an endpoint that accepts no stream."""
    head = attacker.head("POST", "/bp/ai/audio/tts", token=attacker.token(0), headers=CHUNKED)
    await repeat(attacker, 4, begin=[head + b"\r\n" + chunk(b'{"text":"')], then=[_ONE_BYTE_CHUNKS])


async def chunk_extensions(attacker: Attacker) -> None:
    """Send one-byte chunks with short extensions, with extensions of 4 KiB, and with an endless extension."""
    short, long = b"1;a=b\r\nA\r\n", b"1;a=" + b"b" * 4096 + b"\r\nA\r\n"
    endless = b"b" * _PIECE_BYTES
    begin = attacker.upload(0)
    await repeat(
        attacker,
        6,
        begin=[begin, begin, begin + b"1;a="],
        then=[_repeated(short), _repeated(long), endless],
    )


async def trailer_flood(attacker: Attacker) -> None:
    """Send endless trailer fields after a chunked body, short ones and long ones."""
    begin = attacker.upload(0) + b"0\r\n"
    fields = [_repeated(b"a: b\r\n"), _repeated(b"a: " + b"b" * 4096 + b"\r\n")]
    await repeat(attacker, 8, begin=[begin], then=fields)


async def idle_uploads(attacker: Attacker) -> None:
    """Begin uploads that stop: half of them within the parameters, half after them."""
    complete = attacker.parameters("audio")

    async def worker(number: int) -> None:
        parameters = complete if number % 2 else complete[: len(complete) // 2]
        await asyncio.sleep(number * _APART_S)
        connection = await attacker.connect()
        if connection is not None:
            await connection.send(attacker.upload(number, parameters=parameters))

    await together(_IDLE_UPLOADS, worker)
    await asyncio.sleep(_IDLE_S)


async def large_audio(attacker: Attacker) -> None:
    """Say 10 MiB of audio over 4 connections of as many users, repeatedly."""
    audio = chunk(b64encode(bytes(_AUDIO_BYTES))) + chunk(b"")

    async def worker(number: int) -> None:
        while (connection := await attacker.connect()) is not None:
            await connection.send(attacker.upload(number) + audio)
            await connection.receive_until(LAST_CHUNK)
            connection.close()

    await for_at_most(attacker.for_s, together(4, worker))


async def large_json(attacker: Attacker) -> None:
    """Send whole JSON bodies of 8 MiB as one user: numbers, objects, and the text of an image."""
    head = attacker.head(
        "POST", "/bp/ai/imagine", token=attacker.token(0), headers={"Content-Length": str(_JSON_BYTES)}
    )
    bodies = [
        _json(b'{"strategy":"s","type":"inpaint","data":{"x":[0', b",0", b"]}}"),
        _json(b'{"strategy":"s","type":"inpaint","data":{"x":[0', b',{"a":0}', b"]}}"),
        _json(
            b'{"strategy":"s","type":"inpaint","data":{"origin_task_id":"x","prompt":"x","mask":"', b"iVBO", b'"}}'
        ),
    ]
    await repeat(attacker, len(bodies) * 2, begin=[b""], then=[head + b"\r\n" + body for body in bodies])


def _json(begin: bytes, item: bytes, end: bytes) -> bytes:
    """Return a body of `_JSON_BYTES`, filled up with spaces."""
    items = item * ((_JSON_BYTES - len(begin) - len(end)) // len(item))
    return (begin + items + end).ljust(_JSON_BYTES)


async def large_uploads(attacker: Attacker) -> None:
    """Upload files of 20 MiB over 100 connections as one user, and leave out the last byte of each."""
    head = attacker.head(
        "PUT", "/bp/ai/upload", token=attacker.token(0), headers={"Content-Length": str(_FILE_BYTES)}
    )
    upload = head + b"\r\n" + b"\x89PNG\r\n\x1a\n".ljust(_FILE_BYTES - 1, b"x")

    async def worker(number: int) -> None:
        connection = await attacker.connect()
        if connection is not None:
            await connection.send(upload)

    await for_at_most(attacker.for_s, together(100, worker))
