"""What a stream can prove at its end: how long each stage took, and a digest of all it said."""

import hashlib
import time
from typing import Any, Literal, Self

Stage = Literal["admission", "input", "stt", "first_token", "first_text", "first_sentence", "first_audio", "total"]

_TEXTS_AT_ONCE = 256


class Receipt:
    """Times are whole milliseconds from the arrival of the request's head (`time.monotonic()` of it)."""

    __slots__ = (
        "_arrived",
        "_chars",
        "_marks",
        "_overhead_ms",
        "_sha",
        "_unread",
        "_waited_s",
        "_waiting",
        "_waiting_since",
    )

    def __init__(self, arrived: float, *, waited_s: float = 0) -> None:
        self._arrived = arrived
        self._marks: dict[str, int] = {}
        self._sha = hashlib.sha256()
        self._chars = 0
        self._unread: list[str] = []
        """Texts that are not yet in the digest: many at once are cheaper than one by one."""
        self._waiting = 0
        self._waiting_since = 0.0
        self._waited_s = waited_s
        self._overhead_ms: int | None = None

    @property
    def arrived(self) -> float:
        """When the request's head was there, by `time.monotonic()`."""
        return self._arrived

    def mark(self, stage: Stage) -> None:
        """Note the first time that `stage` is reached."""
        if stage not in self._marks:
            self._marks[stage] = round((time.monotonic() - self._arrived) * 1000)

    def reached(self, stage: Stage) -> bool:
        return stage in self._marks

    def waiting(self) -> "_Waiting":
        """A wait, for a block, for the client or a vendor; waits that overlap count once."""
        return _Waiting(self)

    def begin_to_wait(self) -> None:
        if self._waiting == 0:
            self._waiting_since = time.monotonic()
        self._waiting += 1

    def end_to_wait(self) -> None:
        self._waiting -= 1
        if self._waiting == 0:
            self._waited_s += time.monotonic() - self._waiting_since

    def first_output(self) -> None:
        """Fix `overhead`: our own time before the first output, all that was not waiting for others."""
        if self._overhead_ms is None:
            now = time.monotonic()
            waited = self._waited_s + (now - self._waiting_since if self._waiting else 0)
            self._overhead_ms = max(0, round((now - self._arrived - waited) * 1000))

    def said(self, said: str | bytes) -> None:
        """Take what was answered into the digest, in the order of event ids; of text its characters are counted."""
        if isinstance(said, str):
            self._unread.append(said)
            if len(self._unread) < _TEXTS_AT_ONCE:
                return
            said = b""
        self._read_texts()
        self._sha.update(said)

    def _read_texts(self) -> None:
        text = "".join(self._unread)
        self._unread.clear()
        self._chars += len(text)
        self._sha.update(text.encode())

    @property
    def digest(self) -> dict[str, Any]:
        self._read_texts()
        return {"chars": self._chars, "sha256": self._sha.hexdigest()}

    @property
    def latency_ms(self) -> dict[str, int]:
        if self._overhead_ms is None:
            return dict(self._marks)
        return {**self._marks, "overhead": self._overhead_ms}


class _Waiting:
    __slots__ = ("_receipt",)

    def __init__(self, receipt: Receipt) -> None:
        self._receipt: Receipt | None = receipt

    def __enter__(self) -> Self:
        if self._receipt is not None:
            self._receipt.begin_to_wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.over()

    def over(self) -> None:
        """It ended before its block."""
        if self._receipt is not None:
            self._receipt.end_to_wait()
            self._receipt = None
