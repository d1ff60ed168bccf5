"""Child processes that never outlive their parent."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def ending_with_parent(with_signal: signal.Signals) -> Callable[[], None] | None:
    """The `preexec_fn` of a child that gets `with_signal` when its parent is gone, however that ended.

    The kernel of Linux sees to it; other systems have no such thing. The signal comes when the thread that
    started the child ends: start children from the main thread.
    """
    if sys.platform != "linux":
        return None
    libc, parent = ctypes.CDLL(None, use_errno=True), os.getpid()

    def bind() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, with_signal, 0, 0, 0)
        if os.getppid() != parent:  # it ended between the fork and the call
            os.kill(os.getpid(), signal.SIGKILL)

    return bind


def end_with_parent(with_signal: signal.Signals) -> None:
    """Bind this very process to its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, with_signal, 0, 0, 0)
