"""Vendor A at a real socket, whose messages a test sends one by one, and audio for it."""

import struct
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import WSMsgType, web

from streams.input_buffer import InputBuffer
from streams.wire.codec import dumps
from tests.vendors.http.upstream import Respond
from vendors.speech.azure.frames import Frame, read_frame, text_frame

SECOND = 10_000_000


REFUSED = {"unauthorized": (401, False), "rate_limited": (429, True), "out_of_quota": (403, False),
           "server_error": (500, True), "unavailable": (503, True)}  # fmt: skip


def buffered(*pieces: bytes) -> InputBuffer:
    full = InputBuffer()
    for piece in pieces:
        full.write(piece)
    full.end()
    return full


def ogg(seconds: float, codec: bytes = b"OpusHead") -> bytes:
    """Return Ogg pages that are sufficient to determine the type and the duration."""
    head = b"OggS\0\2" + bytes(8) + bytes(14) + codec
    last = b"OggS\0\4" + struct.pack("<Q", round(seconds * 48_000)) + bytes(300)
    return head + last + b"OggS\0\0" + b"\xff" * 8 + bytes(20)


class Service:
    """The vendor's end of one connection. The test sends its messages one by one."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self.turn = ""

    async def receive(self) -> Frame | None:
        message = await self.socket.receive()
        return read_frame(message.data) if message.type in {WSMsgType.TEXT, WSMsgType.BINARY} else None

    async def begin_turn(self) -> Frame:
        """Wait for the context of a turn."""
        while (frame := await self.receive()) is not None:
            if frame.path == "speech.context":
                self.turn = frame.request_id
                return frame
        raise AssertionError("the client left")

    async def samples(self, size: int) -> bytes:
        """Return `size` bytes of audio after the header of this turn, or all until its end."""
        got = b""
        while len(got) < 44 + size and (frame := await self.receive()) is not None and frame.body:
            assert frame.request_id == self.turn
            got += frame.body
        return got[44:]

    async def say(self, path: str, body: dict[str, Any] | None = None) -> None:
        headers = {"X-RequestId": self.turn, "Path": path}
        await self.socket.send_str(text_frame(headers, dumps(body).decode() if body is not None else ""))

    async def phrase(self, text: str, begin: float = 0, seconds: float = 1, status: str = "Success") -> None:
        times = {"Offset": round(begin * SECOND), "Duration": round(seconds * SECOND)}
        await self.say("speech.phrase", {"RecognitionStatus": status, "DisplayText": text, **times})


def playing(play: Callable[[Service], Awaitable[None]]) -> Respond:
    async def answer(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await play(Service(socket))
        await socket.receive()
        return socket

    return answer
