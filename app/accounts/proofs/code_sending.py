"""Sending codes, and the limits per email address, phone number and client IP address (§4.7)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from app.accounts.errors import CodeNotSent, TooManyCodes
from app.http.callers.addresses import client_network
from app.http.callers.limits import CountedTogether, Limit, add_rate_headers
from app.http.rows.endpoint import Call
from storage.accounts.codes import CodeKind
from storage.limits import Bucket
from storage.postgres.database import Connection, TransactionConflict
from streams.wire.errors import StoreError
from streams.wire.ids import sha256_hex

_TAG = "codes"
CODES_SENT = Limit("email_address", together=_TAG, per_address=True)
"""Errors of the endpoints that send codes."""


async def store_code(
    call: Call,
    kind: CodeKind,
    target: str,
    *,
    store: Callable[[Connection], Awaitable[None]],
    notified: str = "",
) -> None:
    """Count a code of `kind`, and call `store` in a transaction, to store the code and the job that sends it.

    If this fails, the code does not count. `target` is the normalized address, or the phone number in E.164.
    `notified` is an address that gets a notice; the notice counts too. Raises `TooManyCodes`, and `CodeNotSent` if
    nothing can be stored at the moment.
    """
    async with counted_code(call, kind, target, notified=notified):
        try:
            async with call.services.database.transaction() as conn:
                await store(conn)
        except TransactionConflict:
            raise
        except StoreError as error:
            raise CodeNotSent from error


@asynccontextmanager
async def counted_code(call: Call, kind: CodeKind, target: str, *, notified: str = "") -> AsyncIterator[None]:
    """Count a code. If the block fails, it does not count. Raises `TooManyCodes`."""
    buckets = _buckets(call, kind, target, notified)
    counts = await call.services.limiter.count_all(buckets, app_id=call.app_id, tag=_TAG)
    add_rate_headers(call.request, counts)
    wait_s = max(count.wait_s for count in counts)
    if wait_s > 0:
        raise TooManyCodes(retry_after_s=wait_s)
    try:
        yield
    except BaseException:
        await CountedTogether(call.services, call.request, buckets, call.app_id, _TAG).take_back()
        raise


def _buckets(call: Call, kind: CodeKind, target: str, notified: str) -> list[Bucket]:
    """Return the buckets of a code. The address of an app's server is not counted, because all users share it."""
    rate, sent = call.app_limits.rate, [f"{kind.name}:{target}", *([f"notice:{notified}"] if notified else [])]
    digests = [sha256_hex(recipient.encode())[:32] for recipient in sent]
    buckets = [Bucket(name, rate(name), who) for who in digests for name in ("email_minute", "email_day")]
    if call.caller.server_key is None:
        address = client_network(call.request, call.services.settings.trusted_proxies)
        buckets.append(Bucket("email_address", rate("email_address"), address))
    return buckets
