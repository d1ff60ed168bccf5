"""The exit codes of commands that fail. systemd restarts a server or a worker only after the first one."""

from streams.wire.errors import StoreUnavailable

FAILED = 1
"""The same command may succeed later, for example when a store is available again."""
REFUSED = 2
"""A setting or an argument must be changed first."""
DOUBTFUL = 3
"""Nothing is broken, but `doctor --strict` has found something that may fail or harm."""


def exit_code(error: BaseException) -> int:
    """Return the exit code of a command that ends with `error`."""
    return FAILED if isinstance(error, StoreUnavailable) else REFUSED
