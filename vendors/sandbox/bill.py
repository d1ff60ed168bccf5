"""The bill of the sandbox: every call, how it ended, and what the vendor would have charged for it."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from streams.wire.codec import now_ms

_MAX_ENTRIES = 100_000

End = Literal["done", "refused", "fault", "closed_by_client"]


@dataclass(slots=True)
class BilledCall:
    """One call. Times are Unix milliseconds. `ended` is None while the call is open."""

    id: int
    vendor: str
    stage: str
    key: str
    fault: str | None
    begun: int
    ended: int | None = None
    how: End | None = None
    outputs: int = 0
    """Number of frames with output, or pieces of audio, that were sent."""
    billed: Counter[str] = field(default_factory=Counter)
    """Usage in the vendor's units: `input_tokens`, `output_tokens`, `characters`, `seconds`."""
    asked: dict[str, Any] = field(default_factory=dict)
    """Parameters of the request."""
    request_id: str = ""
    """The value of the header `X-Request-Id`."""

    @property
    def closed_ms(self) -> int | None:
        """When the client closed the connection before the end of the answer; None if it did not."""
        return self.ended if self.how == "closed_by_client" else None

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "vendor": self.vendor,
            "stage": self.stage,
            "key": self.key,
            "fault": self.fault,
            "begun": self.begun,
            "ended": self.ended,
            "how": self.how,
            "closed_ms": self.closed_ms,
            "outputs": self.outputs,
            "billed": dict(self.billed),
            "asked": self.asked,
            "request_id": self.request_id,
        }


class Bill:
    """The newest 100,000 calls, ordered by their beginning."""

    def __init__(self) -> None:
        self._entries: deque[BilledCall] = deque(maxlen=_MAX_ENTRIES)
        self._changed = asyncio.Event()
        self._last_id = 0

    def begin(self, vendor: str, stage: str, *, key: str, fault: str | None, request_id: str = "") -> BilledCall:
        self._last_id += 1
        entry = BilledCall(self._last_id, vendor, stage, key, fault, now_ms(), request_id=request_id)
        self._entries.append(entry)
        self.notify()
        return entry

    def end(self, entry: BilledCall, how: End) -> None:
        """Mark a call as ended. Has no effect if it has ended already."""
        if entry.ended is None:
            entry.ended = now_ms()
            entry.how = how
            self.notify()

    def since(self, last_id: int = 0) -> Iterator[BilledCall]:
        """Return the entries with ids above `last_id`."""
        return (entry for entry in tuple(self._entries) if entry.id > last_id)

    def clear(self) -> None:
        """Remove all entries, including those of open calls."""
        self._entries.clear()

    async def wait(
        self, matches: Callable[[BilledCall], bool] = lambda entry: entry.ended is not None
    ) -> BilledCall:
        """Wait for an entry that matches and return it. By default, an entry matches if its call has ended."""
        while True:
            changed = self._changed
            for entry in self._entries:
                if matches(entry):
                    return entry
            await changed.wait()

    def notify(self) -> None:
        """Wake all waiters after an entry has changed."""
        self._changed.set()
        self._changed = asyncio.Event()
