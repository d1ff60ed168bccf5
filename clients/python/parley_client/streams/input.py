"""The input of a stream: sent while it is made, and kept, so that the request can be repeated."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterable, AsyncIterator, Callable

Audio = bytes | AsyncIterable[bytes]
"""A recording, or its pieces of any length as they arrive: 16 kHz mono 16-bit PCM, or a file."""
Text = str | AsyncIterable[str | bytes]
"""A text, or its pieces as they arrive. Bytes are UTF-8, which may be cut anywhere."""


class Input:
    """Pieces that are read from their source once, and can be sent any number of times."""

    def __init__(self, source: AsyncIterator[bytes]) -> None:
        self._source = source
        self._pieces: list[bytes] = []
        self._complete = False
        self._grown = asyncio.Event()
        self._recording: asyncio.Task[None] | None = None
        self.sent = False
        """Whether all of it was written to a connection."""
        self.error: Exception | None = None
        """The error of the source, which ended the input."""

    def start(self, on_error: Callable[[], None]) -> None:
        """Begin to read the source. `on_error` is called if it fails."""
        self._recording = asyncio.create_task(self._record(on_error))

    def close(self) -> None:
        """Read no more of the source. What has been read is the whole input."""
        self._complete = True
        self._grown.set()
        self.stop()

    def stop(self) -> None:
        if self._recording is not None:
            self._recording.cancel()

    async def read(self) -> AsyncIterator[bytes]:
        """Yield the input from its beginning. Each iteration gets all of it."""
        at = 0
        while True:
            while at < len(self._pieces):
                yield self._pieces[at]
                at += 1
            if self.error is not None:
                raise self.error  # The request breaks off, so the server stores nothing.
            if self._complete:
                self.sent = True
                return
            self._grown.clear()
            await self._grown.wait()

    async def _record(self, on_error: Callable[[], None]) -> None:
        try:
            async for piece in self._source:
                if piece:
                    self._pieces.append(piece)
                    self._grown.set()
            self._complete = True
            self._grown.set()
        except Exception as error:  # noqa: BLE001 - it is the caller's, and raised where the turn is read
            self.error = error
            self._grown.set()
            on_error()


async def encoded_text(source: AsyncIterable[str | bytes]) -> AsyncIterator[bytes]:
    async for piece in source:
        yield piece.encode() if isinstance(piece, str) else piece


async def encoded_audio(source: Audio) -> AsyncIterator[bytes]:
    """Yield audio as one base64 text, however its pieces are cut."""
    rest = b""
    async for piece in _pieces(source):
        rest += piece
        whole = len(rest) // 3 * 3  # Only such lengths are encoded without padding.
        yield b64encode(rest[:whole])
        rest = rest[whole:]
    yield b64encode(rest)


async def _pieces(source: Audio) -> AsyncIterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    async for piece in source:
        yield piece
