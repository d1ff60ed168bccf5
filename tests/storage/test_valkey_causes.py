"""The reported causes if Valkey answers but cannot be used."""

import asyncio
from pathlib import Path

import hiredis
import pytest
from structlog.testing import capture_logs

from storage.redis import map_errors, open_valkey
from streams.wire.errors import StoreError, StoreUnavailable

HELLO = b"%1\r\n$5\r\nproto\r\n:3\r\n"


async def refused(folder: Path, answer: bytes) -> tuple[StoreError, list[str]]:
    """Return the error of a command that gets `answer`, and the causes in the log."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        commands = hiredis.Reader()
        while data := await reader.read(65_536):
            commands.feed(data)
            while command := commands.gets():
                writer.write({b"HELLO": HELLO, b"SET": answer}.get(command[0], b"+OK\r\n"))
        writer.close()

    path = folder / "v.sock"
    async with await asyncio.start_unix_server(serve, path), open_valkey(f"unix://{path}") as valkey:
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
