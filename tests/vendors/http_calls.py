"""Calls of a vendor over HTTP, and the error of one that must fail."""

from typing import Any

import pytest

from vendors.errors import VendorError
from vendors.outgoing import Outgoing, Repeat
from vendors.transport import VendorHttp

SHORT = {"retry_after_ms": "10"}
"""Headers of an answer after which the second try comes soon."""


async def ask(http: VendorHttp, url: str, **fields: Any) -> bytes:
    """Return the response to a call that may be repeated unless `fields` say otherwise."""
    given = {"headers": {"Authorization": "Bearer k"}, "body": b"question", "repeat": Repeat.SAFE, **fields}
    call = Outgoing("acme", url, **given)
    async with http.stream(call) as answer:
        return b"".join([piece async for piece in answer.pieces()])


async def failing(http: VendorHttp, url: str, **fields: Any) -> VendorError:
    """Return the error of a call that must fail."""
    with pytest.raises(VendorError) as fault:
        await ask(http, url, **fields)
    assert fault.value.vendor == "acme"
    assert fault.value.error_type == "backend unavailable"
    return fault.value
