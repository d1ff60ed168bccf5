"""Forks the Python processes that a process starts, because it has imported their modules already.

A server with several processes starts each of them with a new interpreter, which takes seconds of CPU time. In a
command of the tests that is forked (`tests/running/forks.py`), and in a run of `bench.kills`, they are forked
instead, with the same arguments, environment, file descriptors and preparation.
"""

import asyncio
import atexit
import gc
import os
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

_MODULES = {"app"}
"""Modules whose `python -m <module>` is forked."""
_SUPPORTED = {"env", "cwd", "pass_fds", "preexec_fn", "start_new_session", "stdin", "stdout", "stderr"}

_new_interpreter = asyncio.create_subprocess_exec


class _Child:
    """A process with the attributes of `asyncio.subprocess.Process` that parents use."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin = self.stdout = self.stderr = None
        self._ended = asyncio.Event()
        self._descriptor = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._descriptor, self._reap)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        _, status = os.waitpid(self.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        self._ended.set()

    async def wait(self) -> int | None:
        await self._ended.wait()
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork_children() -> None:
    """Fork the Python processes that this process starts from now on."""
    asyncio.create_subprocess_exec = _start  # type: ignore[assignment]


async def _start(program: str, *arguments: str, **options: Any) -> Any:
    pipes = asyncio.subprocess.PIPE in (options.get(name) for name in ("stdin", "stdout", "stderr"))
    python = program == sys.executable and arguments[0] == "-m" and arguments[1] in _MODULES
    # libuv has its own threads and file descriptors, which a fork would lack.
    plain_loop = isinstance(asyncio.get_running_loop(), asyncio.SelectorEventLoop)
    if not python or pipes or not plain_loop or not options.keys() <= _SUPPORTED:
        return await _new_interpreter(program, *arguments, **options)
    # A signal must not meet the parent's handlers in the new process, which would swallow it.
    allowed = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid == 0:
        _run(arguments[1:], allowed, **options)
    signal.pthread_sigmask(signal.SIG_SETMASK, allowed)
    return _Child(pid)


def _run(
    arguments: tuple[str, ...],
    allowed: set[signal.Signals | int],
    *,
    pass_fds: Any = (),
    env: Mapping[str, str] | None = None,
    **more: Any,
) -> NoReturn:
    """Run `python -m <arguments>` in this new process, and end it without the cleanup of its parent's frames.

    `allowed`: the signal mask of the process.
    """
    code = 1
    try:
        gc.freeze()  # Objects of the parent are never freed, because their descriptors have other meanings here.
        atexit._clear()  # noqa: SLF001 - the parent removes its temporary folders at its own end.
        _reset_signals()
        signal.pthread_sigmask(signal.SIG_SETMASK, allowed)
        _prepare(**more)
        _close_all_but({0, 1, 2, *pass_fds})
        if env is not None:
            given = dict(env)
            os.environ.clear()  # noqa: TID251 - the environment of the process
            os.environ.update(given)  # noqa: TID251
        module, *sys.argv[1:] = arguments
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
        atexit._run_exitfuncs()  # noqa: SLF001
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _reset_signals() -> None:
    """Do what executing a program does: handlers are reset, ignored signals stay ignored."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def _prepare(
    *,
    preexec_fn: Any = None,
    start_new_session: bool = False,
    cwd: Any = None,
    stdin: Any = None,
    stdout: Any = None,
    stderr: Any = None,
) -> None:
    """Do what `subprocess` does before it executes a program: streams, session and `preexec_fn`."""
    for descriptor, given in enumerate((stdin, stdout, stderr)):
        if given == asyncio.subprocess.DEVNULL:
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
        elif given == asyncio.subprocess.STDOUT:
            os.dup2(1, descriptor)
        elif given is not None:
            os.dup2(given if isinstance(given, int) else given.fileno(), descriptor)
    if cwd is not None:
        os.chdir(cwd)
    if start_new_session:
        os.setsid()
    if preexec_fn is not None:
        preexec_fn()


def _close_all_but(kept: set[int]) -> None:
    for path in list(Path("/proc/self/fd").iterdir()):
        if (descriptor := int(path.name)) not in kept:
            try:
                os.close(descriptor)
            except OSError:  # The descriptor by which the folder was listed.
                continue
