"""Limits on the codes that are sent: per address or phone number, and per address of the caller (§4.7)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.accounts.errors import TooManyCodes
from app.http.endpoint import Call
from app.http.limits import COUNTS, client_network
from storage.codes import CodeKind
from storage.limits import Bucket
from streams.wire.ids import sha256_hex

_TAG = "codes"


@asynccontextmanager
async def counted_sending(call: Call, kind: CodeKind, target: str) -> AsyncIterator[None]:
    """Count a code of `kind` that the block sends to `target`. If the block fails, it does not count.

    Raises `TooManyCodes`. `target` is the normalised address, or the phone number in E.164.
    """
    buckets, limiter = _buckets(call, kind, target), call.services.limiter
    counts = await limiter.count_all(buckets, app_id=call.app_id, tag=_TAG)
    call.request[COUNTS] = (*call.request.get(COUNTS, ()), *counts)
    wait_s = max(count.wait_s for count in counts)
    if wait_s > 0:
        raise TooManyCodes(retry_after_s=wait_s)
    try:
        yield
    except BaseException:
        await limiter.count_all(buckets, app_id=call.app_id, tag=_TAG, calls=-1)
        raise


def _buckets(call: Call, kind: CodeKind, target: str) -> list[Bucket]:
    """Return the buckets of a code. All users of an app's server share its address, so it is not counted."""
    rate, who = call.app_limits.rate, sha256_hex(f"{kind.name}:{target}".encode())[:32]
    buckets = [Bucket(name, rate(name), who) for name in ("email_minute", "email_day")]
    if call.caller.server_key is None:
        address = client_network(call.request, call.services.settings.trusted_proxies)
        buckets.append(Bucket("email_address", rate("email_address"), address))
    return buckets
