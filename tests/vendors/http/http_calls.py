"""Calls to a vendor over HTTP."""

from typing import Any

import pytest

from vendors.errors import VendorError
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import VendorHttp

SHORT = {"retry_after_ms": "10"}
"""Response headers that request an early retry."""


async def ask(http: VendorHttp, url: str, **fields: Any) -> bytes:
    """Send a call that may be repeated, and return the response body. `fields` override those of the call."""
    given = {"headers": {"Authorization": "Bearer k"}, "body": b"question", "repeat": Repeat.SAFE, **fields}
    call = Outgoing("acme", url, **given)
    async with http.stream(call) as answer:
        return b"".join([piece async for piece in answer.pieces()])


async def failing(http: VendorHttp, url: str, **fields: Any) -> VendorError:
    """Return the error of a call that must fail."""
    with pytest.raises(VendorError) as fault:
        await ask(http, url, **fields)
    return _checked(fault.value)


async def failing_handshake(http: VendorHttp, url: str, **fields: Any) -> VendorError:
    """Return the error of a WebSocket that must not open."""
    with pytest.raises(VendorError) as fault:
        async with http.websocket(Outgoing("acme", url, **fields)):
            pass
    return _checked(fault.value)


def _checked(fault: VendorError) -> VendorError:
    assert fault.vendor == "acme"
    assert fault.error_type == "backend unavailable"
    return fault
