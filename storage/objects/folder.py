"""An object store in a folder, either local or shared by all nodes. Objects are written atomically."""

import asyncio
import errno
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import ParamSpec, TypeVar

from storage.objects.contract import (
    ObjectsRefused,
    ObjectsUnavailable,
    ObjectsUnwritable,
    PutStatus,
    Stored,
    not_found,
    rechunk,
)
from storage.objects.keys import check_put, content_type_of
from storage.objects.lifecycle import Lifecycle
from storage.objects.links import LINK_S, Links
from streams.wire.errors import StoreError

_IO_S = 10.0
_PIECE_BYTES = 256 * 1024
_INCOMING = ".incoming"  # No key begins with a dot.
_STALE_S = 24 * 60 * 60
_COMMIT_TRIES = 10
_PROBE_S = 10.0
_PROBE_BYTES = 64 * 1024
_CAUSES = {
    errno.ENOSPC: "its disk is full",
    errno.EDQUOT: "its disk quota is used up",
    errno.EFBIG: "a file would be too large",
    errno.EROFS: "its disk is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EIO: "its disk has an I/O error",
    errno.ESTALE: "its network file system is unavailable",
    errno.ENOENT: "its folder does not exist",
    errno.EMFILE: "this process has no file descriptor free",
}

P = ParamSpec("P")
T = TypeVar("T")


class FolderObjects:
    """An object store in a folder. All file access happens in threads and has a timeout."""

    def __init__(self, folder: Path, links: Links) -> None:
        self._folder = folder
        self._puts = PutStatus(str(folder))
        self._probed_at = float("-inf")
        self.links = links

    async def put(self, key: str, body: bytes | AsyncIterator[bytes], *, content_type: str) -> None:
        check_put(key, content_type)
        with self._puts.recorded(body):
            await self._put(key, body)

    async def _put(self, key: str, body: bytes | AsyncIterator[bytes]) -> None:
        temp = self._folder / _INCOMING / secrets.token_hex(16)
        try:
            await _in_thread(temp.touch, exist_ok=False)
            if isinstance(body, bytes):
                await _in_thread(_append, temp, body)
            else:
                async for piece in rechunk(body, _PIECE_BYTES):
                    await _in_thread(_append, temp, piece)
            await _in_thread(_commit, temp, self._folder / key)
        except BaseException:
            await _in_thread(temp.unlink, missing_ok=True)
            raise

    async def get(self, key: str) -> bytes:
        return await _in_thread(_read, self._path(key), 0, None)

    async def stat(self, key: str) -> Stored:
        return await _in_thread(_stat, self._path(key))

    @asynccontextmanager
    async def read(
        self, key: str, *, start: int = 0, length: int | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        path = self._path(key)
        size = _PIECE_BYTES if length is None else min(length, _PIECE_BYTES)
        first = await _in_thread(_read, path, start, size)
        yield _pieces(path, first, start=start, length=length)

    def url(self, key: str, *, valid_s: int = LINK_S) -> str:
        return self.links.url(key, valid_s=valid_s)

    async def folders(self, parent: str) -> list[str]:
        return await _in_thread(_folders, self._folder, parent)

    async def keys(self, folder: str, *, limit: int | None = None) -> list[str]:
        return await _in_thread(_keys, self._folder, folder, limit)

    async def delete(self, keys: Iterable[str]) -> None:
        paths = [self._path(key) for key in keys]
        await _in_thread(_remove, self._folder, paths)

    async def lifecycle(self) -> Lifecycle:
        return Lifecycle()

    async def ping(self) -> None:
        """Raise `StoreError` if objects cannot be stored. A small test file is written every ten seconds."""
        if time.monotonic() >= self._probed_at + _PROBE_S:
            try:
                await _in_thread(_probe, self._folder / _INCOMING)
            except StoreError as error:
                self._puts.failed(error)
                raise ObjectsUnwritable(error.what) from error
            self._probed_at = time.monotonic()
        self._puts.check()

    def _path(self, key: str) -> Path:
        content_type_of(key)
        return self._folder / key


@asynccontextmanager
async def open_folder(folder: Path, links: Links) -> AsyncIterator[FolderObjects]:
    """Open a store in `folder`, creating it if needed. Deletes incomplete files that are older than a day."""
    yield FolderObjects(await _in_thread(_prepare, folder), links)


async def _in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` in a thread with a timeout. The thread is not stopped, so `work` must close all files it opens."""
    try:
        async with asyncio.timeout(_IO_S):
            return await asyncio.to_thread(work, *args, **kwargs)
    except TimeoutError as error:
        raise ObjectsUnavailable(f"its disk did not answer within {_IO_S:g} s") from error
    except OSError as error:
        raise ObjectsRefused(_CAUSES.get(error.errno or 0, "")) from error


async def _pieces(path: Path, first: bytes, *, start: int, length: int | None) -> AsyncIterator[bytes]:
    piece, read_bytes = first, 0
    while piece:
        yield piece
        read_bytes += len(piece)
        size = _PIECE_BYTES if length is None else min(length - read_bytes, _PIECE_BYTES)
        piece = await _in_thread(_read, path, start + read_bytes, size) if size else b""


@contextmanager
def _map_not_found() -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise not_found() from None


def _read(path: Path, start: int, size: int | None) -> bytes:
    with _map_not_found(), path.open("rb", buffering=0) as file:
        file.seek(start)
        return file.read(-1 if size is None else size)


def _stat(path: Path) -> Stored:
    with _map_not_found():
        facts = path.stat()
    etag = f"{facts.st_mtime_ns:x}-{facts.st_size:x}"
    return Stored(size_bytes=facts.st_size, etag=etag, modified=int(facts.st_mtime))


def _probe(folder: Path) -> None:
    path = folder / f"probe-{secrets.token_hex(8)}"
    try:
        path.write_bytes(bytes(_PROBE_BYTES))
        _sync(path)
    finally:
        path.unlink(missing_ok=True)


def _append(path: Path, piece: bytes) -> None:
    """Append to an existing file. Never creates it, so that a write that has timed out cannot restore the file."""
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(piece)


def _commit(temp: Path, path: Path) -> None:
    """Move `temp` to `path` durably. Creates the folder again if `_remove` deletes it at the same time."""
    _sync(temp)
    for tries_left in reversed(range(_COMMIT_TRIES)):
        try:
            _make_folder(path.parent)
            temp.replace(path)
            break
        except (FileNotFoundError, FileExistsError):  # The latter if `mkdir` finds a folder that is then deleted.
            if not tries_left:
                raise
    _sync(path.parent)


def _make_folder(folder: Path) -> None:
    """Create `folder` and its parents durably."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync(folder.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _folders(root: Path, parent: str) -> list[str]:
    with suppress(FileNotFoundError), os.scandir(root / parent) as entries:
        return [f"{parent}{entry.name}/" for entry in entries if entry.is_dir()]
    return []


def _keys(root: Path, folder: str, limit: int | None) -> list[str]:
    keys = (
        str(Path(parent, name).relative_to(root)) for parent, _, names in os.walk(root / folder) for name in names
    )
    return list(islice(keys, limit))


def _remove(root: Path, paths: list[Path]) -> None:
    for path in paths:
        with suppress(NotADirectoryError):
            path.unlink(missing_ok=True)
    for folder in {path.parent for path in paths}:
        _prune(root, folder)


def _prune(root: Path, folder: Path) -> None:
    with suppress(OSError):  # The folder is not empty or does not exist.
        while folder != root:
            folder.rmdir()
            folder = folder.parent


def _prepare(folder: Path) -> Path:
    incoming = folder.absolute() / _INCOMING
    incoming.mkdir(parents=True, exist_ok=True)
    for path in incoming.iterdir():
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - _STALE_S:
                path.unlink()
    return incoming.parent
