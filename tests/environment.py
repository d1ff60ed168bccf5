"""The environment of the tests. No variable of the caller's shell configures the servers that they start."""

import os
import resource
from pathlib import Path

import structlog

_OURS = ("PARLEY_SOAK_", "PARLEY_WRITE_TRANSCRIPTS")
"""Variables that tests read: the size of a soak, and whether transcripts are rewritten."""
_OF_SERVERS = ("PARLEY_", "S3_", "AWS_", "OTEL_")
_CORE = Path(__file__).with_name("core_packages")
_SINGLE = {"HOST", "PORT", "DATABASE_URL", "REDIS_URL"}


def trust_nobody() -> None:
    """Replace the certificates of the system, because each process would need 60 ms to read them at its start.

    Processes then trust one authority, whose key does not exist. Tests name their own authorities.
    """
    nobody = Path(__file__).with_name("nobody.pem")
    os.environ |= {"SSL_CERT_FILE": str(nobody), "SSL_CERT_DIR": os.devnull}  # noqa: TID251 - child processes inherit it


def forget_settings() -> None:
    """Remove each variable from this process that a server or one of its libraries takes a setting from."""
    environment = os.environ  # noqa: TID251 - of the tests, handed on to the processes they start
    for name in list(environment):
        if name in _SINGLE or (name.startswith(_OF_SERVERS) and not name.startswith(_OURS)):
            del environment[name]


def raise_descriptor_limit() -> None:
    """Allow as many open files as the process of a server allows itself. A shell may allow 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def moved_clock() -> dict[str, str]:
    """Return the variables by which `tests/calendar/dates.py` moves the clock of this process, for its children."""
    environment = os.environ  # noqa: TID251 - it is handed on
    return {name: value for name, value in environment.items() if name.startswith(("LD_PRELOAD", "FAKETIME"))}


def log_plain_tracebacks() -> None:
    """Have log lines of this process show exceptions as Python does.

    structlog renders each with rich, where that is installed, which takes 0.1 s of CPU.
    """
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.dev.set_exc_info,
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ]
    )


def core_packages() -> dict[str, str]:
    """Return the variables of server processes that have no packages beyond `deploy/locks/core.lock`.

    structlog and redis-py import rich and OpenTelemetry where they are installed, which takes 0.1 s of CPU.
    """
    return {"PYTHONPATH": str(_CORE)}
