"""Child processes that end when their parent ends."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def ending_with_parent(with_signal: signal.Signals) -> Callable[[], None] | None:
    """Return a `preexec_fn` for a child that receives `with_signal` when its parent ends, even if it is killed.

    This uses a feature of Linux; on other systems the result is `None`. The signal is sent when the thread that
    has started the child ends, so children must be started from the main thread.
    """
    if sys.platform != "linux":
        return None
    libc, parent = ctypes.CDLL(None, use_errno=True), os.getpid()

    def bind() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, with_signal, 0, 0, 0)
        if os.getppid() != parent:  # The parent has ended between the fork and the call.
            os.kill(os.getpid(), signal.SIGKILL)

    return bind


def end_with_parent(with_signal: signal.Signals) -> None:
    """Have this process receive `with_signal` when its parent ends. Does nothing on systems other than Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, with_signal, 0, 0, 0)
