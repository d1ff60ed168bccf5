"""The chunked request of §4.17: a JSON object of parameters, then the input, however they are chunked."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from streams.wire.codec import MAX_DEPTH
from streams.wire.errors import InvalidParameter, TooLarge

WHITESPACE = b" \t\r\n"
_OUTSIDE = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'["\\]')


class FirstObject:
    """Finds the end of the first JSON object in bytes that come in pieces. Pure: no I/O, no clock."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._seen = bytearray()
        self._at = 0
        self._depth = 0
        self._in_string = False

    def feed(self, piece: bytes) -> tuple[bytes, bytes] | None:
        """The object and what followed it in the bytes so far, once the object is complete."""
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
        # what lies behind the limit is not looked at: which fault is told must not depend on the pieces
        seen, limit = self._seen, self._limit_bytes
        while match := (_INSIDE if self._in_string else _OUTSIDE).search(seen, self._at, limit):
            at, byte = match.start(), seen[match.start()]
            if byte == 0x5C:
                if at + 1 == len(seen):  # what is escaped has not come yet
                    self._at = at
                    return None
                self._at = at + 2
                continue
            self._at = at + 1
            if byte == 0x22:
                self._in_string = not self._in_string
            elif byte in b"{[":
                self._depth += 1
                if self._depth > MAX_DEPTH:
                    raise InvalidParameter(f"body is nested deeper than {MAX_DEPTH}")
            else:
                self._depth -= 1
                if self._depth == 0:
                    return self._at
        self._at = len(seen)
        return None


@dataclass(frozen=True, slots=True)
class InputLimits:
    parameters_bytes: int
    parameters_s: float
    idle_s: float
    total_s: float


Part = tuple[bytes, bool]
"""Some bytes, and whether an HTTP chunk ends with them."""
_END: Part = (b"", False)


_SMALL_BYTES = 64
"""Shorter parts are read together with all that is buffered behind them."""


class ChunkReader:
    """Reads one request: `first_json()` once, then `next_part()` until it returns nothing.

    `read` waits for the next part; at the end of the body it returns nothing, with no end of a chunk. `buffered`
    returns at once all bytes that are there, of however many chunks, and does not say where a chunk ends.
    `received`: how many bytes of the body have come so far. `arrived`: whether all of it has.
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
        """What came with the last bytes of the parameters."""
        self._begun = False
        self._deadline: float | None = None
        self._taken = 0
        self._small = False
        """Whether the last part was."""

    async def first_json(self) -> bytes:
        """The bytes of the parameters, as sent."""
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
            if found := scanner.feed(piece):
                parameters, after = found
                self._after = after, chunk_ends
                return parameters
        raise InvalidParameter("body must hold a whole JSON object of parameters")

    async def next_part(self) -> Part | None:
        """The next of the input behind the parameters and the whitespace after them; nothing at its end."""
        part, self._after = self._after, _END
        while True:
            if part == _END:
                is_there = self._received() > self._taken or self._arrived()
                part = await (self._next() if is_there else self._next_in_time())
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
