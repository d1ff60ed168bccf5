"""What both object stores promise, and the faults that callers see."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from storage.availability import Availability
from storage.objects.links import Links
from streams.wire.errors import ItemNotFound, StoreError

_HOLD_S = 30.0
"""So long a call that stored nothing tells that the next would not either."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Facts of an object. `etag` is opaque and changes with the bytes; `modified` is Unix seconds."""

    size_bytes: int
    etag: str
    modified: int


class ObjectStore(Protocol):
    """Keys such as `conversation/<id>/<record>/<n>.mp3`. A key that cannot be one is a `ValueError`.

    A key is written once, or again with the same bytes: readers may take it piece by piece.
    """

    links: Links

    async def put(self, key: str, body: bytes | AsyncIterator[bytes], *, content_type: str) -> None:
        """Store the whole of `body` or nothing; it is durable when this returns."""

    async def get(self, key: str) -> bytes:
        """All bytes; `ItemNotFound` where there are none."""

    async def stat(self, key: str) -> Stored:
        """`ItemNotFound` where nothing is stored."""

    def read(
        self, key: str, *, start: int = 0, length: int | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The bytes from `start` on, `length` of them (1 or more), in pieces; entering finds the object."""

    def url(self, key: str) -> str:
        """A link that opens for 24 hours, without headers. It costs no call: one per row of a history."""

    async def delete(self, keys: Iterable[str]) -> None:
        """Remove what is there of `keys`."""

    async def ping(self) -> None:
        """Whether objects can be stored now."""


class ObjectsAway(StoreError):
    """The object store does not answer, or not in time."""

    error_type = "internal"
    status_hint = 503
    retryable = True

    def __init__(self, cause: str = "") -> None:
        super().__init__(f"the object store is not reachable{cause and f': {cause}'}", retry_after_s=1)


class ObjectsRefused(StoreError):
    """The object store answered, and not as it should."""

    error_type = "internal"
    retryable = True

    def __init__(self, cause: str = "") -> None:
        super().__init__(f"the object store refused{cause and f': {cause}'}")


class Puts:
    """Whether objects can be stored, by the calls that stored some."""

    def __init__(self) -> None:
        self._availability = Availability("objects")
        self._refused: tuple[str, float] | None = None

    def failed(self, error: StoreError) -> None:
        self._refused = error.what, time.monotonic()
        self._availability.failed(error.what, error.__cause__ or "", partly=True)

    def worked(self) -> None:
        self._refused = None
        self._availability.worked()

    def check(self) -> None:
        """Raise `StoreError` where a call has failed in the last seconds and no later one worked."""
        if self._refused is not None and time.monotonic() < self._refused[1] + _HOLD_S:
            raise unable(self._refused[0])


def unable(what: str) -> StoreError:
    """For `ping`: nothing can be stored for now."""
    return StoreError(what, error_type="internal", status_hint=503, retry_after_s=1)


def missing() -> ItemNotFound:
    return ItemNotFound("the file does not exist")


async def gathered(body: bytes | AsyncIterator[bytes], piece_bytes: int) -> AsyncGenerator[bytes]:
    """The body in pieces of at least `piece_bytes`, except the last; nothing for an empty one."""
    if isinstance(body, bytes):
        if body:
            yield body
        return
    held = bytearray()
    async for piece in body:
        held += piece
        if len(held) >= piece_bytes:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)
