"""The chunked request of §4.17: a JSON object of parameters, then the input, however they are chunked."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
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


class ChunkReader:
    """Reads one request: `first_json()` once, then `rest()`. `source` tells where HTTP chunks end.

    `arrived`: whether nothing of `source` has to be waited for any more.
    """

    def __init__(
        self,
        source: AsyncIterator[tuple[bytes, bool]],
        limits: InputLimits,
        *,
        arrived: Callable[[], bool] = lambda: False,
    ) -> None:
        self.arrived = arrived
        self._source = source
        self._limits = limits
        self._after = b""
        self._after_ends_chunk = False

    async def first_json(self) -> bytes:
        """The bytes of the parameters, as sent."""
        scanner = FirstObject(self._limits.parameters_bytes)
        if self.arrived():
            return await self._first_json(scanner)
        try:
            async with asyncio.timeout(self._limits.parameters_s):
                return await self._first_json(scanner)
        except TimeoutError:
            raise InvalidParameter("the parameters timed out") from None

    async def _first_json(self, scanner: FirstObject) -> bytes:
        async for piece, chunk_ends in self._source:
            if found := scanner.feed(piece):
                parameters, self._after = found
                self._after_ends_chunk = chunk_ends
                return parameters
        raise InvalidParameter("body must hold a whole JSON object of parameters")

    async def rest(self) -> AsyncIterator[tuple[bytes, bool]]:
        """The input behind the parameters and the whitespace after them; the flag ends an HTTP chunk."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._limits.total_s
        begun = False
        piece, chunk_ends = self._after, self._after_ends_chunk
        while True:
            if not begun:
                piece = piece.lstrip(WHITESPACE)
                begun = bool(piece)
            if piece or chunk_ends:
                yield piece, chunk_ends
            try:
                if self.arrived():
                    piece, chunk_ends = await anext(self._source)
                else:
                    async with asyncio.timeout_at(min(deadline, loop.time() + self._limits.idle_s)):
                        piece, chunk_ends = await anext(self._source)
            except TimeoutError:
                raise InvalidParameter("input timed out") from None
            except StopAsyncIteration:
                return
