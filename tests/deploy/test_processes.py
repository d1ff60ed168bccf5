"""Several server processes behind one port, as `python -m app serve` runs them."""

import secrets
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress

import pytest
from aiohttp import ClientConnectionError, ClientSession, TCPConnector

from app.processes import check_port
from app.settings import Settings, SettingsError
from streams.tasks import background
from tests.deploy.commands import Command, command, left_of


@asynccontextmanager
async def serving(settings: Settings, **more: str) -> AsyncIterator[Command]:
    env = {
        "PARLEY_ENV": "development",
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "PARLEY_REDIS_PREFIX": settings.redis_prefix,
        "PARLEY_MASTER_KEY": settings.master_key.get_secret_value(),
        "PARLEY_ADMIN_TOKEN": settings.admin_token.get_secret_value(),
        "PARLEY_DATA_DIR": str(settings.data_dir),
        "PARLEY_PROCESSES": "2",
        "PARLEY_DRAIN_TIMEOUT_S": "3",
        "PORT": str(settings.port),
        **more,
    }
    async with command("app", "serve", **env) as parent:
        yield parent


@pytest.fixture
def settings(settings: Settings, listener: socket.socket) -> Settings:
    """Their port is given up by the test: the processes have it."""
    listener.close()
    return settings


async def _ask_without_end(url: str, statuses: list[int], resets: list[str]) -> None:
    """Ask on a new connection each time, and once more where that was reset.

    The kernel resets a connection that waits at a listener which closes in that moment, unless
    `net.ipv4.tcp_migrate_req` is set: no server can take it back.
    """
    async with ClientSession(connector=TCPConnector(force_close=True)) as http:
        while True:
            try:
                statuses.append(await _status(http, url))
            except ClientConnectionError as error:
                resets.append(repr(error))
                statuses.append(await _status(http, url))


async def _status(http: ClientSession, url: str) -> int:
    async with http.get(f"{url}/healthz") as answer:
        return answer.status


async def test_processes_are_replaced_one_at_a_time_and_no_request_fails(settings: Settings):
    async with serving(settings) as parent:
        first = {(await parent.event("process.ready"))["number"] for _ in range(2)}
        statuses: list[int] = []
        resets: list[str] = []
        async with background(_ask_without_end(settings.public_url, statuses, resets)):
            parent.process.send_signal(signal.SIGHUP)
            second = {
                (await parent.event("process.ready"))["number"],
                (await parent.event("process.ready"))["number"],
            }
            await parent.event("server.stopped")
        processes = parent.descendants()
        parent.process.terminate()
        assert await parent.end() == 0
        assert not await left_of(processes)
    assert first == {0, 1}
    assert second == {2, 3}
    assert set(statuses) == {200}
    assert len(resets) <= len(first), "at most the one that met a closing listener"
    assert not [line for line in parent.lines if "process.died" in line]


async def test_process_that_dies_is_started_again_and_none_outlives_the_parent(settings: Settings):
    async with serving(settings) as parent:
        pids = {
            event["number"]: event["pid"] for event in [await parent.event("process.started") for _ in range(2)]
        }
        for _ in range(2):
            await parent.event("process.ready")
        (victim,) = [child for child in parent.descendants() if child.pid == pids[1]]
        victim.kill()
        died, again = await parent.event("process.died"), await parent.event("process.ready")
        assert (died["number"], died["code"], again["number"]) == (1, -signal.SIGKILL, 1)
        processes = parent.descendants()
        parent.process.kill()
        assert not await left_of(processes)


async def test_fault_that_all_share_ends_the_parent(settings: Settings):
    async with serving(settings, DATABASE_URL="postgresql:///none?host=/nowhere") as parent:
        assert await parent.end() == 1
    assert any("parley: database: the database is not reachable: " in line for line in parent.lines)


def _two_free_ports() -> int:
    """The first of them; from below those that the kernel gives to everybody who asks for any."""
    while True:
        base = 20_000 + secrets.randbelow(10_000)
        with suppress(OSError), closing(socket.create_server(("127.0.0.1", base))):
            socket.create_server(("127.0.0.1", base + 1)).close()
            return base


async def test_each_process_has_metrics_of_its_own(settings: Settings):
    base = _two_free_ports()
    async with serving(settings, PARLEY_METRICS_PORT=str(base)) as parent, ClientSession() as http:
        ports = {(await parent.event("process.started"))["metrics_port"] for _ in range(2)}
        for _ in range(2):
            await parent.event("process.ready")
        for port in ports:
            async with http.get(f"http://127.0.0.1:{port}/metrics") as answer:
                assert answer.status == 200
    assert ports == {base, base + 1}


@pytest.mark.parametrize("shared", [False, True])
def test_port_of_another_is_refused_whether_or_not_it_shares(shared: bool):
    with (
        socket.create_server(("127.0.0.1", 0), reuse_port=shared) as other,
        pytest.raises(SettingsError, match="Address already in use"),
    ):
        check_port("127.0.0.1", other.getsockname()[1])


async def test_setting_that_is_wrong_is_one_line(tmp_path):
    async with command("app", "serve", DATABASE_URL="", PARLEY_ENV="development") as serve:
        assert await serve.end() == 1
    assert serve.lines == ["parley: DATABASE_URL is not set (`make run` sets it for you)"]
