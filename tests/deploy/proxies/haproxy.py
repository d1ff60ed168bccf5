"""A real HAProxy with the configuration of `deploy/haproxy.cfg`, edited like an operator would."""

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from app.process.children import ending_with_parent
from tests.code.source_files import ROOT
from tests.deploy.edits import edited
from tests.running.servers import listening_socket

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
CONFIG = ROOT / "deploy" / "haproxy.cfg"
_END_S = 10


@dataclass
class HAProxy:
    url: str
    _file: Path
    _listener: socket.socket
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """Start a process, in place of the running one if there is one, as `systemctl reload` does."""
        replaced = ["-sf", str(self._processes[-1].pid)] if self._processes else []
        process = subprocess.Popen(
            [str(HAPROXY), "-db", "-q", "-f", str(self._file), *replaced],
            cwd=self._file.parent,
            pass_fds=[self._listener.fileno()],
            process_group=0,
            preexec_fn=ending_with_parent(signal.SIGKILL),  # noqa: PLW1509 - two system calls, no lock
        )
        self._processes.append(process)

    @property
    def replaced_has_ended(self) -> bool:
        """Whether the process before the last reload has ended.

        Its exit code means nothing: HAProxy 2.6.12 may crash when it frees its memory, after its last stream.
        """
        return self._processes[-2].poll() is not None

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait(_END_S)


@contextmanager
def running_haproxy(folder: Path, parley: str, edits: Mapping[str, str] | None = None) -> Iterator[HAProxy]:
    """Run HAProxy in front of `parley` (host:port). `edits`: lines and what replaces them."""
    with listening_socket() as listener:
        of_the_test = {
            "    log /dev/log local0\n    user haproxy\n    group haproxy\n": "",
            "    maxconn 32768\n": "    maxconn 1000\n",
            "    log global\n": "",
            "bind :80\n": f"bind fd@{listener.fileno()}\n",
            "127.0.0.1:8080": parley,
        }
        (file := folder / "haproxy.cfg").write_text(edited(CONFIG, {**of_the_test, **(edits or {})}))
        haproxy = HAProxy("http://{}:{}".format(*listener.getsockname()), file, listener)
        haproxy.start()
        try:
            yield haproxy
        finally:
            haproxy.stop()
