"""Runs commands in processes that are forked from one that has imported their modules.

A process imports the modules of a server in 1.4 s of CPU, and the tests start more than a hundred. A forked one is
ready after a few milliseconds. Otherwise it is like a new process: it has its own session, environment and output.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from typing import Self

from app.process.children import ending_with_parent
from streams.wire.codec import dumps
from tests.environment import core_packages

AVAILABLE = sys.platform == "linux"


class _Output(asyncio.StreamReaderProtocol):
    """The output of a process. `lost` is set when its pipe is closed."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__(reader)
        self.lost = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.lost.set()


class ForkedProcess(asyncio.Protocol):
    """A process with the attributes of `asyncio.subprocess.Process` that tests use."""

    pid: int
    returncode: int | None = None
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader | None = None

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._reported = b""
        self._pipes: list[tuple[asyncio.BaseTransport, _Output]] = []
        self._started: asyncio.Future[int] = loop.create_future()
        self._ended: asyncio.Future[None] = loop.create_future()

    @classmethod
    async def start(cls, arguments: tuple[str, ...], env: Mapping[str, str], *, separate_errors: bool) -> Self:
        """Run `python -m <arguments>`. Its standard error is that of `stdout` unless `separate_errors`."""
        ours, theirs = socket.socketpair()
        _, process = await asyncio.get_running_loop().create_unix_connection(cls, sock=ours)
        process.stdout, output = await process._pipe()
        errors = output
        if separate_errors:
            process.stderr, errors = await process._pipe()
        request = dumps({"arguments": arguments, "env": dict(env)})
        try:
            socket.send_fds(_template(), [request], [output, errors, theirs.fileno()])
        finally:
            for descriptor in {output, errors}:
                os.close(descriptor)
            theirs.close()
        process.pid = await process._started
        return process

    async def _pipe(self) -> tuple[asyncio.StreamReader, int]:
        """Return a stream and the descriptor that writes to it."""
        descriptor, output = os.pipe()
        reader = asyncio.StreamReader()
        pipe = await asyncio.get_running_loop().connect_read_pipe(
            lambda: _Output(reader), os.fdopen(descriptor, "rb", buffering=0)
        )
        self._pipes.append(pipe)
        return reader, output

    def data_received(self, data: bytes) -> None:
        *lines, self._reported = (self._reported + data).split(b"\n")
        for line in lines:
            if not self._started.done():
                self._started.set_result(int(line))
            else:
                self.returncode = int(line)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._started.done():
            self._started.set_exception(ChildProcessError("the process was not started"))
        self._ended.set_result(None)

    async def close(self) -> None:
        """Close the pipes of its output. Some tests count open descriptors, so it waits until they are closed."""
        for transport, output in self._pipes:
            transport.close()
            await output.lost.wait()

    async def wait(self) -> int:
        await asyncio.shield(self._ended)
        assert self.returncode is not None, "the process that it was forked from has ended"
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self._ended.done():
            raise ProcessLookupError
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


async def run(*arguments: str, env: Mapping[str, str]) -> tuple[int, str, str]:
    """Run `python -m <arguments>` to its end. Return the exit code, standard output and standard error."""
    if AVAILABLE:
        process = await ForkedProcess.start(arguments, env, separate_errors=True)
    else:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *arguments, env=env, stdout=-1, stderr=-1
        )
    out, errors = await asyncio.gather(process.stdout.read(), process.stderr.read())
    code = await process.wait()
    if isinstance(process, ForkedProcess):
        await process.close()
    return code, out.decode(), errors.decode()


@cache
def _template() -> socket.socket:
    """Start the process that others are forked from, and return the socket for requests to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.running.fork_server", str(theirs.fileno())],
            env={**os.environ, **core_packages()},  # noqa: TID251 - it is handed on
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            preexec_fn=ending_with_parent(signal.SIGTERM),  # noqa: PLW1509 - two system calls, no lock
        )
    _AT_END.callback(process.wait)
    _AT_END.callback(ours.close)  # It ends when nobody can send a request.
    return ours


def end() -> None:
    """End the process that others were forked from, if it was started."""
    _AT_END.close()


_AT_END = ExitStack()
