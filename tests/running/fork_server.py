"""The process that `tests/running/forks.py` starts. It imports the modules of commands once, and forks for each."""

import gc
import os
import runpy
import selectors
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

from app.process.children import ending_with_parent
from bench.forked_children import fork_children
from streams.wire.codec import loads

PRELOADED = (
    "app.main",
    "app.work.worker",
    "app.commands.config",
    "app.commands.keys",
    "app.commands.operators",
    "app.commands.serve",
    "app.commands.users",
    "bench.attack.report",
    "bench.attack.run",
    "bench.deployment",
    "deploy.welcome",
    "vendors.sandbox.server",
)
"""Without the modules that are commands themselves, because these are run again in each process."""
_REQUEST_BYTES = 1 << 17


class Template:
    """Forks on request. A request is JSON with the file descriptors that the new process gets.

    Its status socket reports the process id and later the exit code, as lines.
    """

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)
        self._running: dict[int, tuple[int, socket.socket]] = {}
        """The process id and the status socket, by the descriptor of the process."""

    def next_command(self) -> dict[str, Any]:
        """Return in a new process, with what it is to run. In this process, never return."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is not self._requests:
                    self._report_end(key.fd)
                elif (request := self._fork()) is not None:
                    return request

    def _fork(self) -> dict[str, Any] | None:
        body, descriptors, _, _ = socket.recv_fds(self._requests, _REQUEST_BYTES, 3)
        if not body:
            sys.exit()  # The tests have ended.
        output, errors, status = descriptors
        reports = socket.socket(fileno=status)
        bind = ending_with_parent(signal.SIGTERM)
        pid = os.fork()
        if pid == 0:
            os.setsid()
            if bind is not None:
                bind()
            for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), output, errors)):
                os.dup2(descriptor, number)
                os.close(descriptor)
            self._close(reports)
            return loads(body)
        os.close(output)
        os.close(errors)
        descriptor = os.pidfd_open(pid)
        self._running[descriptor] = pid, reports
        self._selector.register(descriptor, selectors.EVENT_READ)
        _report(reports, pid)
        return None

    def _report_end(self, descriptor: int) -> None:
        pid, reports = self._running.pop(descriptor)
        self._selector.unregister(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        _report(reports, os.waitstatus_to_exitcode(status))
        reports.close()

    def _close(self, reports: socket.socket) -> None:
        """Close what a new process has inherited, but must not hold."""
        reports.close()
        self._selector.close()
        self._requests.close()
        for descriptor, (_, others) in self._running.items():
            os.close(descriptor)
            others.close()


def _report(reports: socket.socket, number: int) -> None:
    with suppress(OSError):  # The test may have ended.
        reports.sendall(b"%d\n" % number)


def main() -> None:
    requests = socket.socket(fileno=int(sys.argv[1]))
    gc.disable()
    for name in PRELOADED:
        import_module(name)
    gc.freeze()
    command = Template(requests).next_command()
    gc.enable()
    os.environ.clear()  # noqa: TID251 - the environment of the command
    os.environ.update(command["env"])  # noqa: TID251
    fork_children()
    module, *arguments = command["arguments"]
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
