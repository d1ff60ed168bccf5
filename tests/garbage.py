"""Finds objects that only the garbage collector frees."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def collected_by_hand() -> Iterator[None]:
    """Exclude all objects that exist from garbage collections, and have none run by itself in the block.

    Otherwise each collection would walk a million objects of the modules and of earlier tests, which takes 0.5 s,
    and would find those of closed servers.
    """
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def garbage() -> list[Any]:
    """Collect, and return the objects in reference cycles that nothing uses."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return list(gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
