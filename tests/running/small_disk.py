"""A file system of a few MiB, to fill it in a test. Only root may mount one."""

import asyncio
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest


@asynccontextmanager
async def small_disk(folder: Path, options: str, *, lazy: bool = False) -> AsyncIterator[None]:
    """Mount a tmpfs on `folder`, or skip the test. `lazy` unmounts it even if a process still uses it."""
    if await _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)):
        pytest.skip("only root may mount a disk")
    try:
        yield
    finally:
        assert await _run("umount", *(["--lazy"] if lazy else []), str(folder)) == 0


async def _run(*command: str) -> int:
    process = await asyncio.create_subprocess_exec(*command, stderr=DEVNULL)
    return await process.wait()
