"""Cheap hashes of passwords for the servers of this process: one with the usual parameters takes 40 ms of CPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

import app.services
from app.password_hashing import open_password_hashes

_CHEAP = partial(open_password_hashes, memory_kib=256, iterations=1)


def hash_cheaply() -> None:
    """Have servers compute hashes in 0.2 ms of CPU. Processes that tests start have the usual parameters."""
    app.services.open_password_hashes = _CHEAP


@contextmanager
def usual_hashes() -> Iterator[None]:
    """Have the servers that are opened in the block compute hashes with the usual parameters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app.services, "open_password_hashes", open_password_hashes)
        yield
