"""Several server processes behind one port, as `python -m app serve` runs them."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from aiohttp import ClientSession, TCPConnector

from app.environment import SettingsError
from app.process.sockets import check_port
from app.settings import Settings
from streams.tasks import background
from tests.deploy.commands import Command, command, left_of
from tests.deploy.serving import serving, settings
from tests.running.ports import free_ports
from tests.running.servers import Databases, listening_socket, settings_of
from tests.waiting import until

__all__ = ["settings"]

pytestmark = [
    pytest.mark.timeout(180),  # A process needs 2 s of CPU to start, and the machine may be busy.
    pytest.mark.xdist_group("processes"),  # One worker starts the processes that tests share.
]

_IN_USE = "Address already in use by another program, or by a server that has not stopped yet"


@dataclass(frozen=True)
class Shared:
    """Two processes that several tests use. Each test leaves two processes that are ready."""

    parent: Command
    settings: Settings
    metrics_ports: set[int]
    postgres: Path
    """A link to the folder of PostgreSQL's socket, as the processes know it."""

    @contextmanager
    def without_database(self) -> Iterator[None]:
        folder = self.postgres.readlink()
        self.postgres.unlink()
        try:
            yield
        finally:
            self.postgres.symlink_to(folder)

    def children(self) -> dict[int, psutil.Process]:
        return {child.pid: child for child in self.parent.descendants()}


@pytest.fixture(scope="module")
async def shared(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shared]:
    data_dir, base = tmp_path_factory.mktemp("data"), free_ports(2)[0]
    with listening_socket() as held:
        port = held.getsockname()[1]
    async with databases.new(seeded=True) as url:
        folder = dict(field.split("=") for field in urlsplit(url).query.split("&"))["host"]
        postgres = data_dir / "postgres"
        postgres.symlink_to(folder)
        settings = settings_of(databases.stores, url.replace(folder, str(postgres)), port, data_dir)
        async with serving(settings, PARLEY_METRICS_PORT=str(base)) as parent:
            await _ready(parent)
            yield Shared(parent, settings, {base, base + 1}, postgres)
    assert _printed(parent) == []


async def _ask_without_end(url: str, statuses: list[int]) -> None:
    """Send each request over a new connection, at most 100 a second, to leave CPU time for starts."""
    async with ClientSession(connector=TCPConnector(force_close=True)) as http:
        while True:
            async with http.get(f"{url}/healthz") as answer:
                statuses.append(answer.status)
            await asyncio.sleep(0.01)


async def _ready(parent: Command, count: int = 2) -> list[dict]:
    return [await parent.event("process.ready") for _ in range(count)]


async def _read(parent: Command) -> None:
    async for _ in parent:
        pass


def _printed(parent: Command) -> list[str]:
    """Return the lines that are not log lines."""
    return [line for line in parent.lines if not line.startswith("{")]


async def test_processes_are_replaced_one_at_a_time_on_the_same_ports_and_no_request_fails(shared: Shared):
    parent, before, said = shared.parent, shared.children(), len(shared.parent.lines)
    statuses: list[int] = []
    async with ClientSession() as http:
        await _metrics_are_served(http, shared.metrics_ports)
        async with background(_ask_without_end(shared.settings.public_url, statuses)):
            parent.process.send_signal(signal.SIGHUP)
            started, ready = [], []
            for _ in range(2):
                started.append(await parent.event("process.started"))
                ready += await _ready(parent, 1)
            async with background(_read(parent)):
                await until(lambda: shared.children().keys() == {event["pid"] for event in ready}, within_s=60)
        await _metrics_are_served(http, shared.metrics_ports)
    assert {event["metrics_port"] for event in started} == shared.metrics_ports
    assert {event["number"] for event in ready} == {0, 1}
    assert not before.keys() & shared.children().keys()
    assert set(statuses) == {200}
    assert not [line for line in parent.lines[said:] if "process.died" in line]


async def _metrics_are_served(http: ClientSession, ports: set[int]) -> None:
    for port in ports:
        async with http.get(f"http://127.0.0.1:{port}/metrics") as answer:
            assert answer.status == 200
        for path in ("/admin/api/kinds", "/bp/ai/offers", "/"):
            async with http.get(f"http://127.0.0.1:{port}{path}") as answer:
                assert answer.status == 404, "this port has no limits on connections"


async def test_process_that_dies_is_restarted_and_requests_are_answered_meanwhile(shared: Shared):
    statuses: list[int] = []
    pid, victim = shared.children().popitem()
    victim.kill()
    died = await shared.parent.event("process.died")
    async with background(_ask_without_end(shared.settings.public_url, statuses)):
        (again,) = await _ready(shared.parent, 1)
    assert (died["pid"], died["code"], died["number"]) == (pid, -signal.SIGKILL, again["number"])
    assert len(statuses) > 5
    assert set(statuses) == {200}


@pytest.mark.parametrize("processes", ["1", "2"])
async def test_sighup_while_a_server_starts_ends_no_process(settings: Settings, processes: str):
    async with serving(settings, fresh=True, PARLEY_PROCESSES=processes) as server:
        await until(lambda: _ignores_sighup(server.process.pid))
        ready = server.event("server.listening" if processes == "1" else "process.ready")
        async with background(ready) as listening:
            while not listening.done():
                for pid in (server.process.pid, *(child.pid for child in server.descendants())):
                    with suppress(ProcessLookupError, FileNotFoundError):  # croniter runs `file` at its import.
                        if _ignores_sighup(pid):
                            os.kill(pid, signal.SIGHUP)
                await asyncio.sleep(0.05)
        if processes == "1":
            await _continues_after_sighup(server, settings.public_url)
        server.process.send_signal(signal.SIGTERM)
        assert await server.end() == 0
    assert not [line for line in server.lines if "died" in line or "SIGHUP before" in line]


async def _continues_after_sighup(server: Command, url: str) -> None:
    async with ClientSession() as http:
        for _ in range(2):
            async with http.get(f"{url}/healthz") as answer:
                assert answer.status == 200
            server.process.send_signal(signal.SIGHUP)
            assert "PARLEY_PROCESSES" in (await server.event("server.not_replaced"))["reason"]


def _ignores_sighup(pid: int) -> bool:
    """Return whether SIGHUP no longer ends the process. Python starts with the default action."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    ignored, caught = (
        int(line.split()[1], 16) for name in ("SigIgn:", "SigCgt:") for line in lines if line.startswith(name)
    )
    return bool((ignored | caught) & 1 << (signal.SIGHUP - 1))


@pytest.mark.soak
@pytest.mark.timeout(120)
async def test_process_that_hangs_while_it_is_replaced_is_killed(settings: Settings):
    async with serving(settings, PARLEY_DRAIN_TIMEOUT_S="1") as parent:
        hung = psutil.Process((await _ready(parent))[0]["pid"])
        hung.suspend()
        parent.process.send_signal(signal.SIGHUP)
        assert (await parent.event("process.killed"))["pid"] == hung.pid
        await until(lambda: not hung.is_running())
        parent.process.send_signal(signal.SIGTERM)
        assert await parent.end() == 0


async def test_error_that_all_processes_have_ends_the_parent_with_one_line(settings: Settings):
    async with serving(settings, DATABASE_URL="postgresql:///none?host=/nowhere") as parent:
        assert await parent.end() == 1
    [line] = _printed(parent)
    assert line == (
        "parley: database: the database is not reachable: its socket file does not exist"
        " (DATABASE_URL: /nowhere:5432, database none)"
    )


async def test_process_continues_if_its_successor_cannot_start(shared: Shared):
    parent, before = shared.parent, shared.children()
    with shared.without_database():
        parent.process.send_signal(signal.SIGHUP)
        refused = await parent.event("process.not_replaced")
        assert refused["reason"].startswith("database: the database is not reachable: ")
        assert shared.children().keys() == before.keys()
        async with ClientSession() as http, http.get(f"{shared.settings.public_url}/healthz") as answer:
            assert answer.status == 200


async def test_process_that_dies_without_a_database_is_restarted_once_it_is_available(shared: Shared):
    parent, before = shared.parent, shared.children()
    pid, victim = before.popitem()
    with shared.without_database():
        victim.kill()
        died = await parent.event("process.died")
        assert died["pid"] == pid
        for _ in range(2):
            refused = await parent.event("process.not_started")
            assert refused["number"] == died["number"]
            assert refused["reason"].startswith("database: the database is not reachable: ")
        assert before.keys() <= shared.children().keys()
    assert (await parent.event("process.ready"))["number"] == died["number"]


async def test_used_metrics_port_ends_the_parent_with_one_line(settings: Settings):
    base = free_ports(2)[0]
    with closing(socket.create_server(("127.0.0.1", base + 1))):
        async with serving(settings, PARLEY_METRICS_PORT=str(base)) as parent:
            assert await parent.end() == 2
    fault = f"cannot listen on 127.0.0.1 port {base + 1}: {_IN_USE}"
    assert parent.lines == [f"parley: {fault} (set PARLEY_METRICS_PORT to change this)"]


@pytest.mark.parametrize("processes", ["1", "2"])
async def test_unusable_data_folder_ends_the_server_with_one_line(settings: Settings, processes: str):
    async with serving(settings, PARLEY_PROCESSES=processes, PARLEY_DATA_DIR="/proc/x") as server:
        assert await server.end() == 2
    fault = "PARLEY_DATA_DIR: cannot write to /proc/x/objects: no such file or directory"
    assert _printed(server) == [f"parley: {fault}"]


async def test_last_port_for_metrics_must_exist(settings: Settings):
    async with serving(settings, PARLEY_METRICS_PORT="65535") as parent:
        assert await parent.end() == 2
    assert parent.lines == [
        "parley: PARLEY_METRICS_PORT must be at most 65534: the 2 processes use consecutive ports"
    ]


async def test_server_stopped_under_traffic_with_one_process_can_be_started_with_two(settings: Settings):
    async with serving(settings, PARLEY_PROCESSES="1") as alone:
        await alone.event("server.listening")
        statuses: list[int] = []
        async with ClientSession(headers={"Connection": "close"}) as http, asyncio.TaskGroup() as tasks:
            for _ in range(8):
                tasks.create_task(_ask_once(http, settings.public_url, statuses))
        # The server has closed these connections first, so the kernel holds them in TIME_WAIT.
        assert statuses == [200] * 8
        alone.process.terminate()
        assert await alone.end() == 0
    async with serving(settings) as parent:
        await _metrics_ports_are_taken(parent)
        await _ready(parent)
        processes = parent.descendants()
        parent.process.terminate()
        assert await parent.end() == 0
        assert not await left_of(processes)
    assert _printed(parent) == []


async def _metrics_ports_are_taken(parent: Command) -> None:
    """Check while the processes start that no other program can listen on their ports for metrics."""
    for _ in range(2):
        port = (await parent.event("process.started"))["metrics_port"]
        with pytest.raises(OSError, match="Address already in use"):
            socket.create_server(("127.0.0.1", port))


async def _ask_once(http: ClientSession, url: str, statuses: list[int]) -> None:
    async with http.get(f"{url}/healthz") as answer:
        statuses.append(answer.status)


@pytest.mark.parametrize("processes", ["1", "2"])
async def test_error_for_a_used_port_is_one_line(settings: Settings, processes: str):
    with closing(socket.create_server(("127.0.0.1", settings.port))):
        async with serving(settings, PARLEY_PROCESSES=processes) as parent:
            assert await parent.end() == 2
    assert parent.lines == [
        f"parley: cannot listen on 127.0.0.1 port {settings.port}: {_IN_USE} (set PORT to change this)"
    ]


@pytest.mark.parametrize("shared", [False, True])
def test_port_of_another_server_is_refused_with_and_without_reuseport(shared: bool):
    with (
        socket.create_server(("127.0.0.1", 0), reuse_port=shared) as other,
        pytest.raises(SettingsError, match="Address already in use"),
    ):
        check_port("127.0.0.1", other.getsockname()[1])


async def test_error_for_an_invalid_setting_is_one_line(tmp_path):
    async with command("app", "serve", DATABASE_URL="", PARLEY_ENV="development") as serve:
        assert await serve.end() == 2
    assert serve.lines == ["parley: DATABASE_URL is not set (`make run` sets it for you)"]
