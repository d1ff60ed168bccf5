"""Measurements that a stream reports at its end: the time of each stage, and a digest of its output."""

import hashlib
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, Self

Stage = Literal["admission", "input", "stt", "first_token", "first_text", "first_sentence", "first_audio", "total"]

_TEXTS_AT_ONCE = 256


class Receipt:
    """The timings and the digest of one stream.

    Stage times are integers in milliseconds, counted from `arrived`: the `time.monotonic()` value at which the
    request's head arrived.
    """

    __slots__ = (
        "_arrived",
        "_chars",
        "_marks",
        "_overhead_ms",
        "_sha",
        "_undigested",
        "waited_s",
        "waiting_since",
        "waits",
    )

    def __init__(
        self, arrived: float, *, waited_s: float = 0, latency_ms: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """`latency_ms`: what another process has measured of the same stream."""
        self._arrived = arrived
        self._marks: dict[str, int] = dict(latency_ms)
        self._sha = hashlib.sha256()
        self._chars = 0
        self._undigested: list[str] = []
        """Texts that are not yet in the digest. Hashing many at once is cheaper than one by one."""
        self.waits = 0
        self.waiting_since = 0.0
        self.waited_s = waited_s
        self._overhead_ms: int | None = self._marks.pop("overhead", None)

    @property
    def arrived(self) -> float:
        """The `time.monotonic()` value at which the request's head arrived."""
        return self._arrived

    def mark(self, stage: Stage) -> None:
        """Record the time of `stage`, unless it is already recorded."""
        if stage not in self._marks:
            self._marks[stage] = round((time.monotonic() - self._arrived) * 1000)

    def mark_earlier(self, stage: Stage, ms: int) -> None:
        """Record the time of `stage` that another process has reached, unless it is already recorded."""
        self._marks.setdefault(stage, max(0, ms))

    def reached(self, stage: Stage) -> bool:
        return stage in self._marks

    def waiting(self) -> "_Waiting":
        """Return a context manager for a wait for the client or a vendor. Overlapping waits count once."""
        return _Waiting(self)

    def first_output(self) -> None:
        """Compute `overhead` at the first output: the time so far minus the time spent waiting for others."""
        if self._overhead_ms is None:
            now = time.monotonic()
            waited = self.waited_s + (now - self.waiting_since if self.waits else 0)
            self._overhead_ms = max(0, round((now - self._arrived - waited) * 1000))

    def add_output(self, output: str | bytes) -> None:
        """Add a part of the answer to the digest, in the order of event ids. Characters of text are counted."""
        if isinstance(output, str):
            self._undigested.append(output)
            if len(self._undigested) < _TEXTS_AT_ONCE:
                return
            output = b""
        self._digest_texts()
        self._sha.update(output)

    def _digest_texts(self) -> None:
        text = "".join(self._undigested)
        self._undigested.clear()
        self._chars += len(text)
        self._sha.update(text.encode())

    @property
    def digest(self) -> dict[str, Any]:
        self._digest_texts()
        return {"chars": self._chars, "sha256": self._sha.hexdigest()}

    @property
    def latency_ms(self) -> dict[str, int]:
        if self._overhead_ms is None:
            return dict(self._marks)
        return {**self._marks, "overhead": self._overhead_ms}


class _Waiting:
    """A wait that ends with its block, or earlier with `end()`."""

    __slots__ = ("_receipt",)

    def __init__(self, receipt: Receipt) -> None:
        self._receipt: Receipt | None = receipt

    def __enter__(self) -> Self:
        receipt = self._receipt
        assert receipt is not None, "a wait can be entered only once"
        if receipt.waits == 0:
            receipt.waiting_since = time.monotonic()
        receipt.waits += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the wait. Further calls have no effect."""
        if (receipt := self._receipt) is not None:
            self._receipt = None
            receipt.waits -= 1
            if receipt.waits == 0:
                receipt.waited_s += time.monotonic() - receipt.waiting_since
