"""Audio that is sent while it is recorded, and kept until the response has begun, so that it can be sent again."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterable, AsyncIterator, Callable

Audio = bytes | AsyncIterable[bytes]
"""A recording, or its pieces of any length as they arrive: 16 kHz mono 16-bit PCM, or a file."""


class AudioInput:
    """Audio as one base64 text, however its pieces are cut."""

    def __init__(self, source: Audio) -> None:
        self._source = source
        self._texts: list[bytes] = []
        self._complete = False
        self._grown = asyncio.Event()
        self._recording: asyncio.Task[None] | None = None
        self.sent = False
        """Whether all of it was written to a connection."""
        self.error: Exception | None = None
        """The error of the source, which ended the recording."""

    def start(self, on_error: Callable[[], None]) -> None:
        """Begin to read the source. `on_error` is called if it fails."""
        self._recording = asyncio.create_task(self._record(on_error))

    def stop(self) -> None:
        if self._recording is not None:
            self._recording.cancel()

    async def texts(self) -> AsyncIterator[bytes]:
        """Yield the audio from its beginning. Each iteration gets all of it."""
        at = 0
        while True:
            while at < len(self._texts):
                yield self._texts[at]
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
            rest = b""
            async for piece in _pieces(self._source):
                rest += piece
                whole = len(rest) // 3 * 3  # Only such lengths are encoded without padding.
                self._add(rest[:whole])
                rest = rest[whole:]
            self._add(rest)
            self._complete = True
            self._grown.set()
        except Exception as error:  # noqa: BLE001 - it is the caller's, and raised where the turn is read
            self.error = error
            self._grown.set()
            on_error()

    def _add(self, audio: bytes) -> None:
        if audio:
            self._texts.append(b64encode(audio))
            self._grown.set()


async def _pieces(source: Audio) -> AsyncIterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    async for piece in source:
        yield piece
