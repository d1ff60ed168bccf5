"""The ledger of the sandbox: every call, how it ended, and what its vendor would have billed for it."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from streams.wire.codec import now_ms

_MOST = 100_000

End = Literal["done", "refused", "fault", "closed_by_client"]


@dataclass(slots=True)
class Entry:
    """One call. Times are Unix milliseconds; while it is open, `ended` is none."""

    id: int
    vendor: str
    stage: str
    key: str
    fault: str | None
    begun: int
    ended: int | None = None
    how: End | None = None
    outputs: int = 0
    """Frames with output, or pieces of audio, that went out."""
    billed: Counter[str] = field(default_factory=Counter)
    """In the vendor's units: `input_tokens`, `output_tokens`, `characters`, `seconds`; of a cut call so far."""
    asked: dict[str, Any] = field(default_factory=dict)
    """What of the request is worth telling."""
    request_id: str = ""
    """What the client says of the request that it makes the call for."""

    @property
    def closed_ms(self) -> int | None:
        """When the client closed the connection, where it did before the answer's end."""
        return self.ended if self.how == "closed_by_client" else None

    def told(self) -> dict[str, Any]:
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
    """The entries in the order in which their calls began; of very many the newest."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=_MOST)
        self._changed = asyncio.Event()
        self._last_id = 0

    def begin(self, vendor: str, stage: str, *, key: str, fault: str | None, request_id: str = "") -> Entry:
        self._last_id += 1
        entry = Entry(self._last_id, vendor, stage, key, fault, now_ms(), request_id=request_id)
        self._entries.append(entry)
        self.tell()
        return entry

    def end(self, entry: Entry, how: End) -> None:
        """A call ends once: what comes of it behind that is no news."""
        if entry.ended is None:
            entry.ended = now_ms()
            entry.how = how
            self.tell()

    def since(self, last_id: int = 0) -> Iterator[Entry]:
        """Entries behind that id."""
        return (entry for entry in tuple(self._entries) if entry.id > last_id)

    def clear(self) -> None:
        """Forget all calls; open ones end unseen."""
        self._entries.clear()

    async def wait(self, matches: Callable[[Entry], bool] = lambda entry: entry.ended is not None) -> Entry:
        """The first entry that matches, now or later; without a condition the first that has ended."""
        while True:
            changed = self._changed
            for entry in self._entries:
                if matches(entry):
                    return entry
            await changed.wait()

    def tell(self) -> None:
        """An entry has changed."""
        self._changed.set()
        self._changed = asyncio.Event()
