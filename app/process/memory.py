"""Returns freed memory to the operating system, because glibc keeps most of it by default.

Does nothing with other C libraries. Memory of small objects is returned only with `PYTHONMALLOC=malloc`: CPython's
own allocator returns an arena of 1 MiB only when all objects in it are gone.
"""

import asyncio
import ctypes
import gc
import sys
from functools import cache

from streams.tasks import stopping

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_MMAP_MAX = -4
"""Parameters of `mallopt`, from `malloc.h`."""
_MMAP_BYTES = 64 * 1024
_MAX_MAPPINGS = 32_768
"""Half of the mappings that Linux allows a process. Further blocks are allocated on the heap."""
_TRIM_BYTES = 1024 * 1024
_TRIM_EVERY_S = 10
_QUICK_OBJECTS = 20_000
"""A garbage collection of this many objects takes about 8 ms."""


@cache
def _glibc() -> ctypes.CDLL | None:
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "gnu_get_libc_version") else None


def limit_free_memory() -> None:
    """Allocate large blocks in separate mappings, which are unmapped when freed. Called once, at start-up.

    By default, glibc raises this threshold to up to 32 MiB when large blocks are freed. Answers are then allocated
    on the heap between small blocks that live longer, so their memory is not returned.
    """
    if (libc := _glibc()) is not None:
        libc.mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
        libc.mallopt(_M_MMAP_MAX, _MAX_MAPPINGS)
        libc.mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)


async def trim_free_memory() -> None:
    """Return free pages of the heap every ten seconds, until cancelled.

    This usually takes 1 to 3 ms, in a thread that does not hold the GIL. Allocations of more than 512 bytes are
    blocked during that time, for up to 30 ms if 100 MiB were freed since the last call.
    """
    libc = _glibc()
    while libc is not None and not stopping():
        await asyncio.sleep(_TRIM_EVERY_S)
        _empty_free_lists()
        await asyncio.to_thread(libc.malloc_trim, 0)


def _empty_free_lists() -> None:
    """Release the objects that CPython keeps for reuse, of which some are left in most pages after many requests.

    Only a full garbage collection does this. It is skipped while many objects are in use, because it would delay
    streams; and with CPython's own allocator, because that returns only whole arenas of 1 MiB.
    """
    if sys.getallocatedblocks() == 0 and len(gc.get_objects()) <= _QUICK_OBJECTS:
        gc.collect()
