"""The open files of IP locations, by path. They are loaded again when they change."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

import structlog

from streams.keyed_lock import KeyedLock
from streams.tasks import background, pause, stopping
from vendors.geo.database import DamagedFile, GeoDatabase

log = structlog.get_logger()

_CHECKED_EVERY_S = 1.0
_CLOSED_AFTER_S = 3600
"""Files that are not used for this long are closed, because configs name other files."""
_SAMPLES = 512

_Version = tuple[int, int, int]
"""Modification time, size and inode."""


class FileNotLoaded(Exception):
    """No version of a file could be loaded. The message says why."""


@dataclass(slots=True)
class _Open:
    """A file, as it was last loaded."""

    version: _Version | None
    """`None` if the file could not be read or was being written."""
    database: GeoDatabase | None
    """The last version that could be loaded."""
    problem: str = ""
    """Why the newest version was not loaded."""
    used_at: float = field(default_factory=time.monotonic)


class GeoFiles:
    """Databases by path. Each is a private copy of its file, so that overwriting the file does no harm."""

    def __init__(self, folder: Path | None) -> None:
        """`folder` is the folder for the copies, by default that for temporary files."""
        self._folder = folder
        self._open: dict[str, _Open] = {}
        self._loading = KeyedLock()

    async def database(self, path: str) -> GeoDatabase:
        """Return the database at `path`. Raises `FileNotLoaded`."""
        opened = self._open.get(path)
        if opened is None:
            async with self._loading.hold(path):
                opened = self._open.get(path)
                if opened is None:
                    opened = self._open[path] = await asyncio.to_thread(_load, Path(path), self._folder)
        opened.used_at = time.monotonic()
        if opened.database is None:
            raise FileNotLoaded(opened.problem)
        return opened.database

    async def keep_current(self) -> None:
        """Load files that have changed, until cancelled."""
        while not stopping():
            await pause(_CHECKED_EVERY_S)
            for path, opened in list(self._open.items()):
                if time.monotonic() - opened.used_at > _CLOSED_AFTER_S:
                    _close(self._open.pop(path))
                else:
                    await self._refresh(path, opened)

    async def _refresh(self, path: str, opened: _Open) -> None:
        if await asyncio.to_thread(_version, Path(path)) == opened.version and opened.version is not None:
            return
        loaded = await asyncio.to_thread(_load, Path(path), self._folder)
        if loaded.database is not None:
            _close(opened)
            loaded.used_at = opened.used_at
            self._open[path] = loaded
            log.info("geo.file_loaded", path=path)
            return
        if (loaded.version, loaded.problem) != (opened.version, opened.problem):
            stays = "the version that was loaded before is used" if opened.database else "no address can be located"
            log.error("geo.file_not_loaded", path=path, reason=loaded.problem, consequence=stays)
        opened.version, opened.problem = loaded.version, loaded.problem

    def close(self) -> None:
        for opened in self._open.values():
            _close(opened)


@asynccontextmanager
async def open_geo_files(folder: Path | None) -> AsyncIterator[GeoFiles]:
    """Yield `GeoFiles` that are kept current for the duration of the block."""
    files = GeoFiles(folder)
    try:
        async with background(files.keep_current()):
            yield files
    finally:
        files.close()


def _close(opened: _Open) -> None:
    if opened.database is not None:
        opened.database.close()


def _version(path: Path) -> _Version | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _load(path: Path, folder: Path | None) -> _Open:
    """Copy a file, open the copy, and look up sample addresses in it. The copy is unlinked when this returns."""
    version = _version(path)
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix="parley-geo-") as copy:
            with path.open("rb") as file:
                shutil.copyfileobj(file, copy)
            copy.flush()
            if _version(path) != version:
                return _Open(None, None, "it is being written")
            return _Open(version, _checked(Path(copy.name)))
    except DamagedFile as error:
        return _Open(version, None, str(error))
    except OSError as error:
        return _Open(version, None, (error.strerror or "it cannot be read").lower())


def _checked(path: Path) -> GeoDatabase:
    # The packages are slow to import, and most processes locate no address.
    from vendors.geo.ip2location import Ip2LocationFile  # noqa: PLC0415
    from vendors.geo.mmdb import MmdbFile, is_mmdb  # noqa: PLC0415

    database: GeoDatabase = MmdbFile(path) if is_mmdb(path) else Ip2LocationFile(path)
    try:
        for sample in range(_SAMPLES):
            database.find(IPv4Address(sample * 2**32 // _SAMPLES))
    except DamagedFile:
        database.close()
        raise
    return database
