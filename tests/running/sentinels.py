"""A Valkey with a replica, and three Sentinels that promote the replica if the primary is lost."""

from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from deploy.running import running
from deploy.stores import valkey_server
from tests.running.ports import free_ports
from tests.waiting import until

_HOST = "127.0.0.1"
_NAME = "streams"
_LOST_AFTER_MS = 500
_SENTINELS = 3
_QUORUM = 2


@dataclass(frozen=True, slots=True)
class Watched:
    """The servers by port: the primary at first, its replica, and the Sentinels."""

    primary: int
    replica: int
    sentinels: list[int]
    processes: dict[int, Process]

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(f'{_HOST}:{port}' for port in self.sentinels)}/{_NAME}"

    async def kill(self, port: int) -> None:
        self.processes[port].kill()
        await self.processes[port].wait()


@asynccontextmanager
async def valkey_with_sentinels(folder: Path) -> AsyncIterator[Watched]:
    async with AsyncExitStack() as stack:
        primary, replica, *sentinels = free_ports(2 + _SENTINELS)
        watched = Watched(primary, replica, sentinels, {})
        for port, more in ((primary, {}), (replica, {"replicaof": f"{_HOST} {primary}"})):
            options = {"bind": _HOST, "port": port, "save": '""', "repl-diskless-sync-delay": 0, **more}
            lines = [f"{name} {value}" for name, value in options.items()]
            watched.processes[port] = await stack.enter_async_context(_server(folder / str(port), lines))
        await until(lambda: _answers(replica, "master_link_status", "up"))
        for port in sentinels:
            lines = [
                f"bind {_HOST}",
                f"port {port}",
                f"sentinel monitor {_NAME} {_HOST} {primary} {_QUORUM}",
                f"sentinel down-after-milliseconds {_NAME} {_LOST_AFTER_MS}",
                f"sentinel failover-timeout {_NAME} 3000",
            ]
            watched.processes[port] = await stack.enter_async_context(
                _server(folder / str(port), lines, "--sentinel")
            )
        for port in sentinels:
            await until(lambda port=port: _knows_all(port))
        yield watched


def _written(folder: Path, lines: list[str]) -> Path:
    folder.mkdir(parents=True)
    config = folder / "valkey.conf"
    config.write_text("\n".join([*lines, f"dir {folder}", ""]))
    return config


@asynccontextmanager
async def _server(folder: Path, lines: list[str], *arguments: str) -> AsyncIterator[Process]:
    config = _written(folder, lines)
    with (folder / "log").open("ab") as output:
        command = [str(valkey_server()), str(config), *arguments]
        async with running(command, stdout=output, stderr=output, cwd="/") as process:
            yield process


async def _answers(port: int, name: str, value: str) -> bool:
    return (await _ask(port, "INFO", "replication")).get(name) == value


async def _knows_all(port: int) -> bool:
    state = await _ask(port, "SENTINEL MASTER", _NAME)
    return bool(state) and state["num-other-sentinels"] == _SENTINELS - 1 and state["num-slaves"] == 1


async def _ask(port: int, *command: str) -> dict[str, Any]:
    try:
        async with Redis(host=_HOST, port=port, retry=Retry(NoBackoff(), 0)) as client:
            answer: dict[str, Any] = await client.execute_command(*command)
            return answer
    except (OSError, RedisError):
        return {}
