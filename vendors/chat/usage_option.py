"""The request field that asks for the usage of a stream in OpenAI's protocol, and that some servers refuse."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from vendors.account import Account
from vendors.chat.second_try import Item, Opened, second_try
from vendors.errors import Refused, TooLong, VendorError

_FIELD = "stream_options"
_Fields = Mapping[str, Any]
_NO_FIELDS: _Fields = {}
USAGE_OPTIONS: _Fields = {_FIELD: {"include_usage": True}}
_NAMES_FIELD = re.compile(rb"stream_?options|include_usage", re.IGNORECASE)
_UNKNOWN_FIELD = re.compile(
    rb"(?:extra|additional|unknown|unexpected|unrecogni[sz]ed|unsupported) (?:\w+ )?"
    rb"(?:input|field|propert|param|arg|key)|not permitted",
    re.IGNORECASE,
)
"""How servers refuse a field without its name."""
_INVALID = frozenset({400, 422})
_REFUSING = _INVALID | {404, 500, 501}


def with_usage(account: Account, opened: Callable[[_Fields], Opened[Item]]) -> Opened[Item]:
    """Open a stream with `opened`, which gets the fields that ask for the usage, or none.

    A server that refuses this is asked again without it, and if that works, in all later calls of the account, too.
    """
    if not account.stream_options or _FIELD in account.refused:
        return opened(_NO_FIELDS)

    def without_usage(error: VendorError) -> Opened[Item] | None:
        return opened(_NO_FIELDS) if _refuses_usage(error) else None

    def remember() -> None:
        account.refused.add(_FIELD)

    return second_try(opened(USAGE_OPTIONS), without_usage, remember)


def _refuses_usage(error: VendorError) -> bool:
    """Return whether the error may be about the request field that asks for the usage."""
    if not isinstance(error, Refused) or isinstance(error, TooLong):
        return False
    said = error.body or str(error).encode()
    if _NAMES_FIELD.search(said):
        return error.vendor_status is None or error.vendor_status in _REFUSING
    return error.vendor_status in _INVALID and _UNKNOWN_FIELD.search(said) is not None
