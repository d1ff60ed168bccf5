"""The input of a stream: written once as it arrives, read from its start by every attempt."""

import asyncio
from collections.abc import AsyncGenerator
from io import BytesIO

_PIECE_BYTES = 256 * 1024
"""Readers that begin late get the input in pieces, because a copy of all of it takes 10 ms."""


class InputBuffer:
    """A buffer with one writer and any number of readers, each of which reads all bytes from the first one.

    The writer calls `write()`, then `end()` or `fail()`. Nothing is dropped, so the writer must limit the size.
    """

    __slots__ = ("_bytes", "_ended", "_error", "_size", "_waiters")

    def __init__(self) -> None:
        self._bytes = BytesIO()
        self._size = 0
        self._ended = False
        self._error: Exception | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def __len__(self) -> int:
        return self._size

    @property
    def complete(self) -> bool:
        """Whether the whole input has arrived without an error."""
        return self._ended and self._error is None

    def write(self, piece: bytes) -> None:
        self._bytes.write(piece)
        self._size += len(piece)
        self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    def fail(self, error: Exception) -> None:
        """End the input with an error. Readers receive the bytes before it first. Ignored if already ended."""
        if not self._ended:
            self._error = error
            self.end()

    async def read(self) -> AsyncGenerator[bytes]:
        """Yield all bytes from the first one, in pieces as they arrive. Raises the error passed to `fail()`."""
        position = 0
        while True:
            if position < self._size:
                piece = self._copy(position, position + _PIECE_BYTES)
                position += len(piece)
                yield piece
            elif self._error is not None:
                raise self._error
            elif self._ended:
                return
            else:
                await self._change()

    async def head(self, size: int) -> bytes:
        """Return the first `size` bytes, or the whole input if it is shorter."""
        while self._size < size and not self._ended:
            await self._change()
        if self._error is not None and self._size < size:
            raise self._error
        return self._copy(0, size)

    async def completed(self) -> None:
        """Wait until the whole input has arrived. Raises the error passed to `fail()`."""
        while not self._ended:
            await self._change()
        if self._error is not None:
            raise self._error

    async def whole(self) -> bytes:
        """Return the whole input, once it is complete."""
        await self.completed()
        return self._bytes.getvalue()  # This does not copy it.

    def _copy(self, begin: int, end: int) -> bytes:
        with self._bytes.getbuffer() as view:
            return bytes(view[begin:end])

    async def _change(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            self._waiters.remove(waiter)

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
