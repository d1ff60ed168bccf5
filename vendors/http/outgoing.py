"""A call to a vendor over HTTP, and whether it may be sent again after it has failed."""

from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass, field
from enum import Enum


class Repeat(Enum):
    NEVER = "never"
    """The call is sent once. Its result is unknown if the connection is lost before the response."""
    SAFE = "safe"
    """The call may be sent again: it changes nothing, or a second result does no harm."""


@dataclass(frozen=True, slots=True)
class RepeatWithKey:
    """The call may be sent again, because the vendor executes all calls with the same key only once."""

    key: str
    """Unique for the effect of the call. Store it before the first call."""
    header: str = "Idempotency-Key"
    """The vendor's name of the header that carries the key."""

    def __post_init__(self) -> None:
        if not self.key:
            raise ValueError("key must not be empty")


@dataclass(slots=True)
class Outgoing:
    """One call to a vendor. `body` is bytes, or an async iterable, which is never sent twice.

    A call is sent once unless `repeat` says otherwise. Clients of payment platforms use `MoneyCall` and `ReadCall`
    instead.
    An iterable body may still be sent while its response is read. The caller closes the iterable. An exception that
    it raises is raised to the reader of the response.
    """

    vendor: str
    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | AsyncIterable[bytes] | None = None
    connect_s: float = 5
    repeat: Repeat | RepeatWithKey = Repeat.NEVER
    public_only: bool = False
    """Whether to connect to public addresses only. For URLs from a vendor's answer, as opposed to a config."""

    @property
    def may_repeat(self) -> bool:
        return self.repeat is not Repeat.NEVER and (self.body is None or isinstance(self.body, bytes))

    @property
    def sent_headers(self) -> Mapping[str, str]:
        """The headers with the key of `repeat`."""
        if isinstance(self.repeat, Repeat):
            return self.headers
        return {**self.headers, self.repeat.header: self.repeat.key}


@dataclass(slots=True, kw_only=True)
class MoneyCall(Outgoing):
    """A call that moves money, which cannot be made without a key."""

    repeat: RepeatWithKey


@dataclass(slots=True, kw_only=True)
class ReadCall(Outgoing):
    """A call that changes nothing at the vendor, so it may be sent again. It may be a POST, such as a query."""

    method: str = "GET"
    repeat: Repeat = field(default=Repeat.SAFE, init=False)
