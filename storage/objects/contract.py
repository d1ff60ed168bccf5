"""What both object stores promise, and the faults that callers see."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from storage.objects.links import Links
from streams.wire.errors import ItemNotFound, StoreError


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

    def __init__(self) -> None:
        super().__init__("the object store is not reachable", retry_after_s=1)


class ObjectsRefused(StoreError):
    """The object store answered, and not as it should."""

    error_type = "internal"
    retryable = True

    def __init__(self) -> None:
        super().__init__("the object store refused")


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
