"""What can go wrong outside: a vendor's fault is never the client's 500."""

from collections.abc import Mapping
from typing import Any

from streams.wire.errors import ServiceError


class VendorError(ServiceError):
    """A vendor refused, was not reached, was late or spoke nonsense. Holds no secret.

    `retryable`: the same call may succeed when it is made again.
    `vendor`: the platform id of the catalog.
    """

    error_type = "backend unavailable"
    address = ""
    """Host and port of a vendor that was not reached. For the log alone, as `detail`."""
    detail = ""
    """What the system says of the failure."""

    def __init__(
        self,
        vendor: str,
        what: str,
        *,
        retryable: bool = False,
        retry_after_s: float | None = None,
        status: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.vendor = vendor
        self.retryable = retryable
        self.status = status
        super().__init__(f"{vendor} {what}", retry_after_s=retry_after_s, extra=extra)


class Refused(VendorError):
    """The vendor answered with an error."""


class Unreachable(VendorError):
    """No connection, or it broke."""


class TimedOut(VendorError):
    """Nothing came within the time that the strategy allows."""


class Garbled(VendorError):
    """An answer that is not what the protocol says, or that ended without its end mark."""


class Empty(VendorError):
    """A whole answer with nothing in it."""


def broke_off(vendor: str, error: Any) -> Refused:
    """An error behind the 200, in OpenAI's form: it may be told in words alone."""
    told = error.get("message", "") if isinstance(error, dict) else error
    return Refused(vendor, f"broke off with an error: {str(told)[:200]}", retryable=True)
