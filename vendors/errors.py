"""Errors of vendor calls. A failed vendor is reported as such and never as an internal error (500)."""

from collections.abc import Mapping
from typing import Any

from streams.wire.errors import BackendUnavailable
from vendors.too_long import says_too_long

_LASTING = frozenset({"400", "401", "402", "403", "404", "405", "422"})
"""The statuses of errors that the same call would get again."""


class VendorError(BackendUnavailable):
    """A vendor call failed. The message contains no secrets.

    `vendor`: the platform id of the catalog.
    `retryable`: whether the same call may succeed later.
    `vendor_status`: the HTTP status of the vendor's response, if it is known.
    """

    address = ""
    """Host and port of a vendor that was not reached. Logged only, never sent to clients."""
    detail = ""
    """The error message of the operating system. Logged only, never sent to clients."""

    def __init__(
        self,
        vendor: str,
        problem: str,
        *,
        retryable: bool = False,
        retry_after_s: float | None = None,
        vendor_status: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.vendor = vendor
        self.retryable = retryable
        self.vendor_status = vendor_status
        fields = {
            name: _encodable(value) if isinstance(value, str) else value for name, value in (extra or {}).items()
        }
        super().__init__(f"{vendor} {_encodable(problem)}", retry_after_s=retry_after_s, extra=fields)


def _encodable(text: str) -> str:
    """Return `text` with `?` for halves of characters, which vendors send in damaged JSON."""
    return text.encode(errors="replace").decode()


class Refused(VendorError):
    """The vendor responded with an error."""

    body = b""
    """The first 16 KiB of the body. It may repeat secrets of the call, so it is neither logged nor sent."""


class TooLong(Refused):
    """The messages are longer than the model's context."""


class Unreachable(VendorError):
    """The connection failed or was lost."""


class TimedOut(VendorError):
    """The vendor sent nothing within the time limit of the strategy."""


class Garbled(VendorError):
    """The response violates the vendor's protocol or ends without its end mark."""


class Empty(VendorError):
    """The response is complete but has no content."""


def error_in_stream(vendor: str, error: Any) -> Refused:
    """Return the error for an OpenAI error object, or a plain string, inside a 200 response."""
    fields = error if isinstance(error, dict) else {"message": error}
    message = str(fields.get("message") or fields.get("code") or fields.get("type") or "")
    code = str(fields.get("code"))
    is_too_long = says_too_long(message, code)
    return (TooLong if is_too_long else Refused)(
        vendor, f"broke off with an error: {message[:200]}", retryable=not (is_too_long or code in _LASTING)
    )
