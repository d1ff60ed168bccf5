"""The environment of the tests: nothing of the caller's shell configures the servers that they start."""

import os

_OURS = ("PARLEY_SOAK_", "PARLEY_WRITE_TRANSCRIPTS")
"""Read by tests themselves: how much a soak does, and whether transcripts are written anew."""
_OF_SERVERS = ("PARLEY_", "S3_", "AWS_", "OTEL_")
_SINGLE = {"HOST", "PORT", "DATABASE_URL", "REDIS_URL"}


def forget_settings() -> None:
    """Remove each variable from this process that a server or one of its libraries takes a setting from."""
    environment = os.environ  # noqa: TID251 - of the tests, handed on to the processes they start
    for name in list(environment):
        if name in _SINGLE or (name.startswith(_OF_SERVERS) and not name.startswith(_OURS)):
            del environment[name]
