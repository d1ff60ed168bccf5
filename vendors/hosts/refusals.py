"""What the refusals of model and image hosts mean to the callers of our endpoints."""

from streams.wire.errors import ConfigInvalid, InvalidParameter, ServiceError
from vendors.errors import Refused

_ACCOUNT = frozenset({401, 402, 403})
"""The key is wrong, or the account cannot pay."""
_BUSY = frozenset({408, 429})


def meaning_of(refused: Refused) -> ServiceError:
    """Return the error for clients: of the account, of what they have sent, or `refused` itself."""
    status = refused.vendor_status or 500
    if status in _ACCOUNT:
        return ConfigInvalid(f"the account was refused: {refused.what}")
    if 400 <= status < 500 and status not in _BUSY:
        return InvalidParameter(refused.what)
    return refused
