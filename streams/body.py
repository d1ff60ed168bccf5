"""Read the chunked request body of §4.17: a JSON object of parameters, then the input.

The result does not depend on the chunk boundaries, because proxies may change them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from streams.wire.errors import InvalidParameter, TooLarge
from streams.wire.nesting import MAX_DEPTH, end_of_bracket, levels, outside_strings

WHITESPACE = b" \t\r\n"


class FirstObject:
    """Find the end of the first JSON object in a sequence of byte pieces. Performs no I/O and reads no clock."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._seen = bytearray()
        self._at = 0
        self._depth = 0
        self._in_string = False

    def feed(self, piece: bytes) -> tuple[bytes, bytes] | None:
        """Return the object and the bytes that follow it, or `None` while the object is incomplete.

        Raises `InvalidParameter` if the body does not begin with an object or nests too deeply, and `TooLarge`
        if the object exceeds the limit.
        """
        if not self._seen:
            piece = piece.lstrip(WHITESPACE)
            if piece and piece[:1] != b"{":
                raise InvalidParameter("body must begin with a JSON object of parameters")
        self._seen += piece
        end = self._scan()
        if end is not None:
            return bytes(self._seen[:end]), bytes(self._seen[end:])
        if len(self._seen) > self._limit_bytes:
            raise TooLarge(f"the parameters exceed {self._limit_bytes} bytes")
        return None

    def _scan(self) -> int | None:
        # Bytes beyond the limit are not examined: the error must not depend on how the body was split.
        part = bytes(self._seen[self._at : self._limit_bytes])
        if (len(part) - len(part.rstrip(b"\\"))) % 2:  # The escaped byte has not arrived yet.
            part = part[:-1]
        part, self._in_string = outside_strings(part, in_string=self._in_string)
        depths = levels(part, before=self._depth)
        end = depths.index(0, 1) if 0 in depths[1:] else None
        if max(depths[:end]) > MAX_DEPTH:
            raise InvalidParameter(f"body is nested deeper than {MAX_DEPTH} levels")
        if end is not None:
            return self._at + end_of_bracket(part, end)
        self._at += len(part)
        self._depth = depths[-1]
        return None


@dataclass(frozen=True, slots=True)
class InputLimits:
    parameters_bytes: int
    parameters_s: float
    idle_s: float
    total_s: float


Part = tuple[bytes, bool]
"""Bytes of the body, and whether an HTTP chunk ends with them."""
_END: Part = (b"", False)


_SMALL_BYTES = 64
"""After a part shorter than this, the next read takes everything that is buffered."""


class ChunkReader:
    """Read one request: call `first_json()` once, then `next_part()` until it returns `None`.

    `read` waits for the next part and returns `(b"", False)` at the end of the body. `buffered` returns all bytes
    that have already arrived, without waiting and without chunk boundaries. `received` returns the number of body
    bytes received so far. `arrived` returns whether the whole body has been received.
    """

    __slots__ = (
        "_after",
        "_arrived",
        "_begun",
        "_buffered",
        "_deadline",
        "_limits",
        "_read",
        "_received",
        "_small",
        "_taken",
    )

    def __init__(
        self,
        read: Callable[[], Awaitable[Part]],
        limits: InputLimits,
        *,
        buffered: Callable[[], bytes] = lambda: b"",
        received: Callable[[], int] = lambda: 0,
        arrived: Callable[[], bool] = lambda: False,
    ) -> None:
        self._read = read
        self._buffered = buffered
        self._received = received
        self._arrived = arrived
        self._limits = limits
        self._after = _END
        """The bytes that arrived together with the end of the parameters."""
        self._begun = False
        self._deadline: float | None = None
        self._taken = 0
        self._small = False
        """Whether the last part was shorter than `_SMALL_BYTES`."""

    async def first_json(self) -> bytes:
        """Return the bytes of the JSON object exactly as sent.

        Raises `InvalidParameter` if they are invalid, incomplete or late, and `TooLarge` if they exceed the limit.
        """
        scanner = FirstObject(self._limits.parameters_bytes)
        if self._arrived():
            return await self._first_json(scanner)
        try:
            async with asyncio.timeout(self._limits.parameters_s):
                return await self._first_json(scanner)
        except TimeoutError:
            raise InvalidParameter("the parameters timed out") from None

    async def _first_json(self, scanner: FirstObject) -> bytes:
        while (part := await self._next()) != _END:
            piece, chunk_ends = part
            if result := scanner.feed(piece):
                parameters, after = result
                self._after = after, chunk_ends
                return parameters
        raise InvalidParameter("body must contain a complete JSON object of parameters")

    async def next_part(self) -> Part | None:
        """Return the next part of the input, or `None` at its end.

        Whitespace between the parameters and the input is skipped. Raises `InvalidParameter` on a timeout.
        """
        part, self._after = self._after, _END
        while True:
            if part == _END:
                available = self._received() > self._taken or self._arrived()
                part = await (self._next() if available else self._next_in_time())
                if part == _END:
                    return None
            if not self._begun:
                part = part[0].lstrip(WHITESPACE), part[1]
                self._begun = bool(part[0])
            if part != _END:
                return part

    async def _next(self) -> Part:
        if self._small and (rest := self._buffered()):
            part = rest, False
        else:
            part = await self._read()
        size = len(part[0])
        self._taken += size
        self._small = 0 < size < _SMALL_BYTES
        return part

    async def _next_in_time(self) -> Part:
        now = asyncio.get_running_loop().time()
        if self._deadline is None:
            self._deadline = now + self._limits.total_s
        try:
            async with asyncio.timeout_at(min(self._deadline, now + self._limits.idle_s)):
                return await self._next()
        except TimeoutError:
            raise InvalidParameter("input timed out") from None
