"""A real PgBouncer in transaction mode, and tests that reach PostgreSQL through it."""

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from app.process.children import ending_with_parent
from app.settings import Settings
from deploy.stores import _as_plain_user
from tests.code.source_files import ROOT

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
NEEDS_PGBOUNCER = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
CONFIG = ROOT / "deploy" / "pgbouncer.ini"
_PORT = 6432
"""Part of the name of the socket. Each PgBouncer has a folder of its own for it."""
_READY_S = 20
_END_S = 10
_SESSIONS = 10


@dataclass(frozen=True)
class Pooler:
    """A PgBouncer, whose databases are those of one PostgreSQL."""

    folder: Path
    process: "subprocess.Popen[bytes]"

    def url(self, database_url: str) -> str:
        """Return the URL at which a database of PostgreSQL is reached through the pooler."""
        parts = urlsplit(database_url)
        return f"postgresql://{parts.path}?host={self.folder}&port={_PORT}&user=parley"

    def settings(self, database_url: str) -> dict[str, str]:
        """Return fields of the settings of a server behind the pooler."""
        return {"database_url": self.url(database_url), "database_direct_url": database_url}

    def lead_to(self, address: Mapping[str, str]) -> None:
        """Let the databases be at another address, as an operator does after a failover."""
        write_config(self.folder, address)
        self.process.send_signal(signal.SIGHUP)


def write_config(folder: Path, address: Mapping[str, str], **options: object) -> None:
    """Write the shipped configuration, with changes that an operator could make. `options` replaces values."""
    where = " ".join(f"{name}={value}" for name, value in {"user": "parley", **address}.items())
    given = {
        "listen_addr": "",
        "unix_socket_dir": folder,
        "logfile": folder / "pgbouncer.log",
        "pidfile": folder / "pgbouncer.pid",
        "auth_type": "any",
        "default_pool_size": _SESSIONS,
        "max_client_conn": 1_000,
        **options,
    }
    lines = []
    for line in CONFIG.read_text().splitlines():
        name, assigned, _ = line.partition(" = ")
        if name == "parley":
            lines.append(f"* = {where}")
        elif assigned and name in given:
            lines.append(f"{name} = {given.pop(name)}")
        elif name != "auth_file":
            lines.append(line)
    assert not given, f"{CONFIG} has no {', '.join(given)}"
    (folder / "pgbouncer.ini").write_text("\n".join([*lines, ""]))


@contextmanager
def running_pgbouncer(address: Mapping[str, str], **options: object) -> Iterator[Pooler]:
    """Run PgBouncer in front of the PostgreSQL at `address`, which has libpq's names. `options` are PgBouncer's."""
    with tempfile.TemporaryDirectory(prefix="parley-") as name:  # A short path for the socket.
        folder = Path(name)
        write_config(folder, address, **options)
        process = subprocess.Popen(
            [*_as_plain_user(folder), str(PGBOUNCER), "--quiet", str(folder / "pgbouncer.ini")],
            preexec_fn=ending_with_parent(signal.SIGKILL),  # noqa: PLW1509 - two system calls, no lock
        )
        try:
            _wait_for(folder / f".s.PGSQL.{_PORT}", process)
            yield Pooler(folder, process)
        finally:
            process.kill()
            process.wait(_END_S)


def address_of(database_url: str) -> dict[str, str]:
    """Return the address of the PostgreSQL of a URL of the tests."""
    return {name: values[0] for name, values in parse_qs(urlsplit(database_url).query).items()}


def _wait_for(path: Path, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + _READY_S
    while time.monotonic() < until and process.poll() is None:
        with socket.socket(socket.AF_UNIX) as client:
            if client.connect_ex(str(path)) == 0:
                return
        time.sleep(0.01)  # noqa: TID251 - no loop may run yet
    raise AssertionError(f"PgBouncer did not start: {(path.parent / 'pgbouncer.log').read_text()}")


_of_all: list[Pooler] = []
"""The pooler in front of the databases of all tests, with `--pooler`."""


@contextmanager
def pooler_of_all(database_url: str) -> Iterator[None]:
    """Let the servers of all tests reach PostgreSQL through a pooler during the block."""
    with running_pgbouncer(address_of(database_url)) as pooler:
        _of_all.append(pooler)
        try:
            yield
        finally:
            _of_all.remove(pooler)


def database_env(settings: Settings) -> dict[str, str]:
    """Return the environment variables of a process on the database of a test."""
    direct = {"DATABASE_DIRECT_URL": settings.direct_url} if settings.is_pooled else {}
    return {"DATABASE_URL": settings.database_url, **direct}


def urls_of(database_url: str) -> dict[str, str]:
    """Return the fields of the settings of a test server that say where its database is."""
    return _of_all[0].settings(database_url) if _of_all else {"database_url": database_url}
