"""Hashes of passwords (argon2id), computed in threads: one takes tens of milliseconds of CPU time."""

import asyncio
import base64
import os
import secrets
import sys
import threading
import unicodedata
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from prometheus_client import Counter, Gauge

from streams.wire.errors import Unavailable

MAX_WAITING = 64
"""How many callers wait for a free thread. Further ones are refused."""
_MEMORY_KIB = 19_456
_ITERATIONS = 2
_SALT_BYTES = 16
_HASH_BYTES = 32
_NICER_BY = 10
"""How much lower the priority of the threads is than that of the event loop, on which streams depend."""

REFUSED = Counter("parley_passwords_refused", "Passwords that were not checked or stored because too many waited")
WAITING = Gauge("parley_passwords_waiting", "Passwords that wait for a free thread")

T = TypeVar("T")


class PasswordsBusy(Unavailable):
    """Too many passwords are being checked at the moment."""

    def __init__(self) -> None:
        super().__init__("too many passwords are being checked, retry later")


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking a password. `new_hash` is to replace a hash with other parameters, if it is set."""

    right: bool
    new_hash: str | None = None


class PasswordHashes:
    """Computes and checks hashes, as many at once as the process has cores."""

    def __init__(self, *, threads: int, hasher: PasswordHasher) -> None:
        self._hasher = hasher
        self._unknown = _hash_of_nothing(hasher)
        self._threads = ThreadPoolExecutor(threads, "passwords", initializer=_lower_priority)
        self._size = threads
        self._free = asyncio.Semaphore(threads)
        self._waiting = 0

    async def hash(self, password: str) -> str:
        """Return a hash to be stored. Raises `PasswordsBusy`."""
        return await self._in_thread(lambda: self._hasher.hash(_bytes(password)))

    async def check(self, password: str, known_hash: str | None) -> Checked:
        """Check a password against the stored hash. Raises `PasswordsBusy`.

        `None` stands for a user who does not exist or has no password. The result is false, after the same time.
        """
        return await self._in_thread(lambda: self._check(password, known_hash))

    async def close(self) -> None:
        """Wait for the threads to finish."""
        for _ in range(self._size):
            await self._free.acquire()
        self._threads.shutdown()

    def _check(self, password: str, known_hash: str | None) -> Checked:
        raw = _bytes(password)
        try:
            self._hasher.verify(known_hash or self._unknown, raw)
        except VerifyMismatchError:
            return Checked(right=False)
        if known_hash is None:
            return Checked(right=False)
        outdated = self._hasher.check_needs_rehash(known_hash)
        return Checked(right=True, new_hash=self._hasher.hash(raw) if outdated else None)

    async def _in_thread(self, compute: Callable[[], T]) -> T:
        """Return the result of `compute`. A caller that is cancelled while it waits leaves the queue."""
        if self._free.locked() and self._waiting >= MAX_WAITING:
            REFUSED.inc()
            raise PasswordsBusy
        self._waiting += 1
        WAITING.inc()
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
            WAITING.dec()
        loop = asyncio.get_running_loop()
        result = self._threads.submit(compute)
        # The thread is free when it has finished, even if the caller is cancelled before.
        result.add_done_callback(lambda _: loop.call_soon_threadsafe(self._free.release))
        return await asyncio.wrap_future(result)


def _bytes(password: str) -> bytes:
    """Return the bytes to hash. Keyboards encode the same characters differently, which NFKC evens out."""
    return unicodedata.normalize("NFKC", password).encode()


def _hash_of_nothing(hasher: PasswordHasher) -> str:
    """Return a hash with the parameters of `hasher` that matches no password."""
    salt, digest = (
        base64.b64encode(secrets.token_bytes(size)).decode().rstrip("=") for size in (_SALT_BYTES, _HASH_BYTES)
    )
    parameters = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v=19${parameters}${salt}${digest}"


def _lower_priority() -> None:
    if sys.platform == "linux":  # On Linux, each thread has its own priority.
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + _NICER_BY)


@asynccontextmanager
async def open_password_hashes(
    *, memory_kib: int = _MEMORY_KIB, iterations: int = _ITERATIONS, threads: int | None = None
) -> AsyncIterator[PasswordHashes]:
    """Open the threads, by default one for each core that this process may use."""
    hasher = PasswordHasher(iterations, memory_kib, parallelism=1, hash_len=_HASH_BYTES, salt_len=_SALT_BYTES)
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    hashes = PasswordHashes(threads=threads or cores, hasher=hasher)
    try:
        yield hashes
    finally:
        await hashes.close()
