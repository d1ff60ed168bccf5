"""The interface of the object stores and the errors that they raise."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from storage.availability import SECONDS, Availability
from storage.objects.lifecycle import Lifecycle
from storage.objects.links import LINK_S, Links
from streams.wire.errors import InternalError, ItemNotFound, StoreError

_HOLD_S = 30.0
"""How long the store counts as not writable after a failed `put`."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Metadata of an object. `etag` changes with the content; `modified` is in seconds since the Unix epoch."""

    size_bytes: int
    etag: str
    modified: int


class ObjectStore(Protocol):
    """Stores objects under keys such as `conversation/<id>/<record>/<n>.mp3`.

    All methods raise `ValueError` for an invalid key. A key must not be written again with other content, because
    readers read an object in several requests.
    """

    links: Links

    async def put(self, key: str, body: bytes | AsyncIterator[bytes], *, content_type: str) -> None:
        """Store all of `body`, or nothing if an error occurs. The object is durable when this returns."""

    async def get(self, key: str) -> bytes:
        """Return the whole object. Raises `ItemNotFound` if it does not exist."""

    async def stat(self, key: str) -> Stored:
        """Return the metadata of an object. Raises `ItemNotFound` if it does not exist."""

    def read(
        self, key: str, *, start: int = 0, length: int | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open an object and iterate over its bytes in pieces, from offset `start`.

        `length`, at least 1, is the number of bytes; by default all that follow. Entering the context raises
        `ItemNotFound` if the object does not exist.
        """

    def url(self, key: str, *, valid_s: int = LINK_S) -> str:
        """Return a link that is valid for 24 hours or `valid_s`, and needs no headers. This calls no store."""

    async def folders(self, parent: str) -> list[str]:
        """Return the folders in `parent` as prefixes: `["speech/default/20261122/"]` in `speech/default/`."""

    async def keys(self, folder: str, *, limit: int | None = None) -> list[str]:
        """Return the keys below `folder`, or at most `limit` of them, in no particular order."""

    async def delete(self, keys: Iterable[str]) -> None:
        """Delete those of `keys` that exist."""

    async def lifecycle(self) -> Lifecycle:
        """Return which objects the store deletes by itself. Raises no error."""

    async def ping(self) -> None:
        """Raise `StoreError` if objects cannot be stored now."""


class ObjectsError(StoreError):
    """The object store failed, or an object is not as it was stored."""

    error_type = InternalError.error_type
    status = InternalError.status


class ObjectsUnwritable(ObjectsError):
    """The object store does not accept writes at the moment."""

    status = 503
    retryable = True
    retry_after_s = 1


class ObjectsUnavailable(ObjectsError):
    """The object store is not available."""

    status = 503
    retryable = True
    retry_after_s = 1

    def __init__(self, cause: str = "") -> None:
        super().__init__(f"the object store is not reachable{cause and f': {cause}'}")


class ObjectsRefused(ObjectsError):
    """The object store has refused a call."""

    retryable = True

    def __init__(self, cause: str = "") -> None:
        super().__init__(f"the object store refused{cause and f': {cause}'}")


class NoCredentials(ObjectsError):
    """No credentials for the bucket were found when the server started."""

    def __init__(self) -> None:
        super().__init__("S3_BUCKET is set, but no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")


class PutStatus:
    """Whether objects can be stored, according to the results of `put`."""

    def __init__(self, location: str) -> None:
        self._availability = Availability("objects", location=location)
        self._refused: tuple[str, float] | None = None

    def failed(self, error: StoreError) -> None:
        self._refused = error.what, time.monotonic()
        self._availability.failed(error.what, error.__cause__ or "", partly=True)

    @contextmanager
    def recorded(self, body: bytes | AsyncIterator[bytes]) -> Iterator[None]:
        """Record the result of a `put`, and its time unless that includes waiting for pieces of `body`."""
        began = time.monotonic()
        try:
            yield
        except StoreError as error:
            self.failed(error)
            raise
        if isinstance(body, bytes):
            SECONDS.add(time.monotonic() - began, "objects")
        self._refused = None
        self._availability.worked()

    def check(self) -> None:
        """Raise `StoreError` if a call has failed in the last 30 s and no later one has succeeded."""
        if self._refused is not None and time.monotonic() < self._refused[1] + _HOLD_S:
            raise ObjectsUnwritable(self._refused[0])


def not_found() -> ItemNotFound:
    return ItemNotFound("the file does not exist")


async def rechunk(body: bytes | AsyncIterator[bytes], piece_bytes: int) -> AsyncGenerator[bytes]:
    """Yield `body` in pieces of `piece_bytes`. The last may be smaller. Yields nothing if the body is empty."""
    if isinstance(body, bytes):
        for at in range(0, len(body), piece_bytes):
            yield body[at : at + piece_bytes]
        return
    buffer = bytearray()
    async for piece in body:
        buffer += piece
        while len(buffer) >= piece_bytes:
            with memoryview(buffer) as whole:
                full = bytes(whole[:piece_bytes])
            del buffer[:piece_bytes]
            yield full
    if buffer:
        yield bytes(buffer)
