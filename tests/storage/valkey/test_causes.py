"""The reported causes if Valkey cannot be used, and where it is."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import hiredis
import pytest
from redis.asyncio import UnixDomainSocketConnection
from structlog.testing import capture_logs

from storage.valkey.client import map_errors
from storage.valkey.opening import open_valkey
from streams.wire.errors import StoreError, StoreUnavailable, ValkeyError
from tests.running.servers import Stores
from tests.storage.wrong_servers import UNKNOWN_HOST, wrong_servers
from tests.waiting import passes

pytestmark = pytest.mark.one_valkey

HELLO = b"%1\r\n$5\r\nproto\r\n:3\r\n"


def answering(answer: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Return the handler of a server that answers `SET` so, and accepts all other commands."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        commands = hiredis.Reader()
        while data := await reader.read(65_536):
            commands.feed(data)
            while command := commands.gets():
                writer.write({b"HELLO": HELLO, b"SET": answer}.get(command[0], b"+OK\r\n"))
        writer.close()

    return serve


async def refused(folder: Path, answer: bytes) -> tuple[StoreError, list[str]]:
    """Return the error of a command that gets `answer`, and the causes in the log."""
    path = folder / "v.sock"
    async with await asyncio.start_unix_server(answering(answer), path), open_valkey(f"unix://{path}") as valkey:
        with capture_logs() as lines:
            for _ in range(3):
                with pytest.raises(StoreError) as fault, map_errors():
                    await valkey.call("SET", "a", "b")
    return fault.value, [line["cause"] for line in lines if line["event"] == "store.unavailable"]


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (b"-OOM command not allowed when used memory > 'maxmemory'.\r\n", "is out of memory (`maxmemory`)"),
        (b"-READONLY You can't write against a read only replica.\r\n", "is read-only"),
        (b"-LOADING Valkey is loading the dataset in memory\r\n", "is loading its data"),
        (b"-MISCONF Valkey is configured to save RDB snapshots\r\n", "cannot write its disk"),
        (b"-NOAUTH Authentication required.\r\n", "requires a password"),
    ],
)
async def test_unusable_valkey_is_reported_once_as_unavailable(tmp_path: Path, answer: bytes, cause: str):
    fault, causes = await refused(tmp_path, answer)

    assert isinstance(fault, StoreUnavailable)
    assert fault.what == f"Valkey {cause}"
    assert causes == [f"Valkey {cause}"]


async def test_a_refused_command_is_not_an_outage(tmp_path: Path):
    fault, causes = await refused(tmp_path, b"-WRONGTYPE Operation against a key\r\n")

    assert not isinstance(fault, StoreUnavailable)
    assert causes == []


async def test_socket_that_does_not_exist_is_named(tmp_path: Path):
    async with open_valkey(f"unix://{tmp_path / 'nobody.sock'}") as valkey:
        with pytest.raises(StoreUnavailable, match="Valkey is not reachable: its socket file does not exist"):
            await valkey.ping()


NOT_REACHABLE = "is not reachable"
FAULTS = {
    "refused": ("redis://:secret@127.0.0.1:{refused}/3", f"{NOT_REACHABLE}: connection refused"),
    "wrong password": ("unix://ada:secret@{socket}?db=1", "refuses this server's password"),
    "missing database": ("unix://{socket}?db=99", "has no database with the number in its URL"),
    "unknown host": ("redis://ada:secret@{host}", f"{NOT_REACHABLE}: its host name was not resolved"),
    "silent": ("redis://:secret@127.0.0.1:{silent}", "did not answer in time"),
    "not Valkey": (
        "redis://127.0.0.1:{http}/?password=secret",
        f"{NOT_REACHABLE}: the server at its address is neither Valkey nor Redis",
    ),
    "closing": ("redis://:secret@127.0.0.1:{closing}", f"{NOT_REACHABLE}: the connection was lost"),
}
"""The URL, and the cause."""
LOCATIONS = {
    "refused": "127.0.0.1:{refused}, database 3",
    "wrong password": "{socket}, database 1, user ada",
    "missing database": "{socket}, database 99",
    "unknown host": "{host}:6379, user ada",
    "silent": "127.0.0.1:{silent}",
    "not Valkey": "127.0.0.1:{http}",
    "closing": "127.0.0.1:{closing}",
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_server_that_cannot_be_used_is_logged_with_the_cause_and_without_the_password(
    stores: Stores, fault: str, unused_tcp_port: int
) -> None:
    url, cause = FAULTS[fault]
    async with wrong_servers() as ports:
        places = {
            "refused": unused_tcp_port,
            "host": UNKNOWN_HOST,
            "socket": urlsplit(stores.redis_url).path,
            **ports,
        }
        with capture_logs() as logged:
            async with open_valkey(url.format(**places)) as valkey:
                with pytest.raises(StoreUnavailable) as raised, map_errors():
                    await valkey.call("PING")
    assert raised.value.what == f"Valkey {cause}"
    # What earlier tests have started may log too, such as the number of lines that it left out in a second.
    (line,) = (line for line in logged if line.get("store") == "valkey")
    assert (line["event"], line["cause"]) == ("store.unavailable", f"Valkey {cause}")
    assert line["location"] == LOCATIONS[fault].format(**places)
    assert "secret" not in str(line)


OPTIONS = {
    "socket_timeout=soon": "Invalid value for 'socket_timeout' in connection URL.",
    "foo=abc": "unknown option foo",
    "retry=5": "an option has a wrong value",
}
"""An option of the URL, and what is wrong with it."""


@pytest.mark.parametrize("option", OPTIONS)
async def test_a_url_that_cannot_be_used_is_named_without_the_password(option: str) -> None:
    with pytest.raises(ValkeyError) as raised:
        async with open_valkey(f"redis://ada:secret@127.0.0.1/2?{option}"):
            pass
    location = "(REDIS_URL: 127.0.0.1:6379, database 2, user ada)"
    assert raised.value.what == f"REDIS_URL cannot be used: {OPTIONS[option]} {location}"


@pytest.mark.parametrize("pipelined", [True, False])
async def test_a_connection_that_is_lost_before_a_command_is_an_outage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, pipelined: bool
) -> None:
    begins = UnixDomainSocketConnection.on_connect

    async def begin_and_lose(connection: UnixDomainSocketConnection) -> None:
        await begins(connection)
        connection._writer.transport.abort()
        await passes()  # The loop closes the transport before the task runs, as it may on a busy machine.

    path = tmp_path / "v.sock"
    async with await asyncio.start_unix_server(answering(b""), path), open_valkey(f"unix://{path}") as valkey:
        get = valkey.call if pipelined else valkey.client.execute_command
        with monkeypatch.context() as losing:
            losing.setattr(UnixDomainSocketConnection, "on_connect", begin_and_lose)
            with pytest.raises(StoreUnavailable) as fault, map_errors():
                await get("GET", "a")
        assert fault.value.what == "Valkey is not reachable: the connection was lost"
        assert await get("GET", "a") == b"OK"
