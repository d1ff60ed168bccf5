"""The slot that a stream holds while it runs, and the time for which it can be read after its end."""

import time

from storage.conversations import continuations
from storage.conversations.admission import Admissions, Slot
from storage.conversations.detached_logs import DetachedLog
from storage.valkey.client import Valkey


class HeldSlot:
    """The conversation turn and the admission slot of one stream, and the times for which its log is kept."""

    __slots__ = (
        "_admissions",
        "_max_stream_s",
        "_readable_until",
        "_slot",
        "_valkey",
        "process",
        "readable_s",
    )

    def __init__(
        self,
        slot: Slot,
        admissions: Admissions,
        valkey: Valkey,
        *,
        process: str,
        max_stream_s: float,
        readable_s: float,
    ) -> None:
        self.process = process
        self._slot = slot
        self._admissions = admissions
        self._valkey = valkey
        self._max_stream_s = max_stream_s
        self.readable_s = readable_s
        """How long the log is kept after the stream has ended, in seconds."""
        self._readable_until: float | None = None
        """Time on the monotonic clock; None while the stream runs."""

    async def release(self, *, aborted: bool) -> None:
        """Free the turn and the slot. The stream remains readable for a while, unless it was aborted."""
        readable_s = 0 if aborted else self.readable_s
        self._readable_until = time.monotonic() + readable_s
        await self._admissions.release(self._slot, readable_s=readable_s)

    @property
    def keep_s(self) -> float:
        """How long a copy of the log is kept from now on, in seconds. Decreases once the stream has ended."""
        if self._readable_until is None:
            return self._max_stream_s + self.readable_s
        return self._readable_until - time.monotonic()

    def detached_log(self) -> DetachedLog:
        """Return the copy of the log in Valkey, which does not exist before its first events are appended."""
        slot = self._slot
        return DetachedLog(
            self._valkey,
            app_id=slot.app_id,
            user_id=slot.user_id,
            stream_id=slot.stream_id,
            process=self.process,
        )

    async def save(self, continuation: bytes) -> None:
        """Save what another process needs to continue or to store the stream. Raises `StoreError`."""
        await continuations.save(self._valkey, self._slot, continuation, lifetime_s=self.keep_s)
