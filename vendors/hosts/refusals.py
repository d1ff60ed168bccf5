"""Converts refusals of model and image hosts into errors for the callers of our endpoints."""

from streams.wire.errors import ConfigInvalid, InvalidParameter, ServiceError
from vendors.errors import Refused

_ACCOUNT = frozenset({401, 402, 403})
"""The key is wrong, or the account cannot pay."""
_BUSY = frozenset({408, 429})


def meaning_of(refused: Refused) -> ServiceError:
    """Return the error for clients, which blames the account or the request, or `refused` itself."""
    status = refused.vendor_status or 500
    if status in _ACCOUNT:
        return ConfigInvalid(f"the account was refused: {refused.what}")
    if 400 <= status < 500 and status not in _BUSY:
        return InvalidParameter(refused.what)
    return refused
