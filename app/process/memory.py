"""Returns freed memory to the operating system: by default glibc keeps most of it.

On other C libraries, whose allocators differ, nothing is done.
"""

import asyncio
import ctypes
from functools import cache

from streams.tasks import stopping

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_MMAP_MAX = -4
"""Parameters of `mallopt`, from `malloc.h`."""
_MMAP_BYTES = 64 * 1024
_MOST_MAPPINGS = 32_768
"""Half of what Linux allows a process; what exceeds it lies in the heap."""
_TRIM_BYTES = 1024 * 1024
_TRIM_EVERY_S = 10


@cache
def _glibc() -> ctypes.CDLL | None:
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "gnu_get_libc_version") else None


def limit_free_memory() -> None:
    """Give large blocks mappings of their own, which end with the block. Called once, at start-up.

    Left alone, glibc raises this threshold to 32 MiB as soon as a block of that size was freed. Answers then lie in
    the heap, between small blocks that live longer, and their memory stays with the process.
    """
    if (libc := _glibc()) is not None:
        libc.mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
        libc.mallopt(_M_MMAP_MAX, _MOST_MAPPINGS)
        libc.mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)


async def trim_free_memory() -> None:
    """Return the free pages of the heap every few seconds, until cancelled.

    It usually takes 1 to 3 ms, in a thread without the interpreter's lock. Allocations of more than 512 bytes wait
    meanwhile: up to 30 ms where 100 MiB were freed since the last time.
    """
    libc = _glibc()
    while libc is not None and not stopping():
        await asyncio.sleep(_TRIM_EVERY_S)
        await asyncio.to_thread(libc.malloc_trim, 0)
