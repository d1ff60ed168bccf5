"""A real HAProxy with the configuration of `deploy/haproxy.cfg`, edited like an operator would."""

import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from app.process.children import ending_with_parent
from tests.code.source_files import ROOT
from tests.deploy.edits import edited
from tests.running.servers import listening_socket

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
CONFIG = ROOT / "deploy" / "haproxy.cfg"
_END_S = 10


@contextmanager
def running_haproxy(folder: Path, parley: str, edits: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run HAProxy in front of `parley` (host:port), and yield its URL. `edits`: lines and what replaces them."""
    with listening_socket() as listener:
        of_the_test = {
            "    log /dev/log local0\n    user haproxy\n    group haproxy\n": "",
            "    maxconn 32768\n": "    maxconn 1000\n",
            "    log global\n": "",
            "bind :80\n": f"bind fd@{listener.fileno()}\n",
            "127.0.0.1:8080": parley,
        }
        (file := folder / "haproxy.cfg").write_text(edited(CONFIG, {**of_the_test, **(edits or {})}))
        process = subprocess.Popen(
            [str(HAPROXY), "-db", "-q", "-f", str(file)],
            cwd=folder,
            pass_fds=[listener.fileno()],
            process_group=0,
            preexec_fn=ending_with_parent(signal.SIGKILL),  # noqa: PLW1509 - two system calls, no lock
        )
        url = "http://{}:{}".format(*listener.getsockname())
    try:
        yield url
    finally:
        process.kill()
        process.wait(_END_S)
