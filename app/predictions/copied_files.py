"""Copies files that hosts have made to our object store, because hosts soon delete them."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import Any

from actors.clients.vendor_clients import VendorAccess
from storage.objects import ObjectStore
from storage.objects.keys import CONTENT_TYPES, extension_of
from storage.postgres.database import Database
from storage.tasks import task_files
from streams.audio.media import HEAD_BYTES, media_type
from vendors.hosts.files import is_file, read_file

MAX_BYTES = 128 * 1024 * 1024
_WITHIN_S = 120
_UNKNOWN = "application/octet-stream"


class CopiedFiles:
    """Copies files of one user. `keys` contains the keys of the copies."""

    def __init__(
        self,
        database: Database,
        objects: ObjectStore,
        access: VendorAccess[Any, Any],
        owner: tuple[str, str],
        now: Callable[[], datetime],
    ) -> None:
        """`owner`: the app and the user."""
        self._database = database
        self._objects = objects
        self._access = access
        self._owner = owner
        self._now = now
        self.keys: dict[str, str] = {}
        """The key of each copy by the URL of the file."""

    async def copy_all(self, value: Any, *, hosts: Sequence[str], most: int) -> None:
        """Copy at most `most` files whose URLs are in a JSON value.

        The files of a deactivated user are not copied. Raises `VendorError` or `StoreError`.
        """
        for url in _texts(value):
            if len(self.keys) < most and url not in self.keys and is_file(self._access.account, url, hosts=hosts):
                copy = partial(self._copy, url)
                await self._access.gate.call(self._access.platform, copy, within_s=_WITHIN_S)

    async def _copy(self, url: str) -> None:
        read = read_file(self._access.http, self._access.account, url, limit_bytes=MAX_BYTES)
        async with aclosing(read) as pieces:
            head = bytearray()
            async for piece in pieces:
                head += piece
                if len(head) >= HEAD_BYTES:
                    break
            found = media_type(bytes(head[:HEAD_BYTES]))
            content_type = found if found in CONTENT_TYPES.values() else _UNKNOWN
            assert content_type is not None, "a type that is not known has been replaced"
            app_id, uid = self._owner
            key = task_files.new_key(app_id, uid, origin="predictions", extension=extension_of(content_type))
            async with self._database.connection() as conn:
                if not await task_files.add(conn, app_id, uid, key=key, now=self._now()):
                    return
            async with aclosing(_joined(bytes(head), pieces)) as body:
                await self._objects.put(key, body, content_type=content_type)
        self.keys[url] = key


async def _joined(head: bytes, rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    yield head
    async for piece in rest:
        yield piece


def _texts(value: Any) -> list[str]:
    """Return all texts in a JSON value."""
    if isinstance(value, str):
        return [value]
    entries = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for entry in entries for text in _texts(entry)]
