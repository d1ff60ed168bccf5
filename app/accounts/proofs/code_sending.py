"""Sending codes, and the limits per email address, phone number and client IP address (§4.7)."""

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from app.accounts.errors import CodeNotSent, TooManyCodes
from app.http.callers.addresses import client_network
from app.http.callers.limits import CountedTogether, Limit, add_rate_headers
from app.http.rows.endpoint import Call
from storage.accounts.codes import VERIFY_LINK, CodeKind
from storage.limits import Bucket, Count
from storage.postgres.database import Connection, TransactionConflict
from streams.wire.errors import StoreError
from streams.wire.ids import sha256_hex
from streams.wire.model import Model

_TAG = "codes"
Counted = Callable[[], AbstractAsyncContextManager[float]]
"""Counts a link, and yields the seconds after which it may be sent. If its block fails, it does not count."""
CODES_SENT = Limit("email_address", together=_TAG, per_address=True)
"""Errors of the endpoints that send codes."""


def no_link() -> AbstractAsyncContextManager[float]:
    """Count nothing, because no link is sent."""
    return nullcontext(0.0)


class MailDelay(Model):
    """When the link that verifies the address can be sent, if it was not sent. Otherwise, the body is empty."""

    next_mail_s: int
    """Seconds after which `POST /bp/user/me/email/send_verify_code` sends it."""


async def store_code(
    call: Call, kind: CodeKind, target: str, *, store: Callable[[Connection], Awaitable[None]]
) -> None:
    """Count a code of `kind`, and call `store` in a transaction, to store the code and the job that sends it.

    If this fails, the code does not count. `target` is the normalized address, or the phone number in E.164. Raises
    `TooManyCodes`, and `CodeNotSent` if nothing can be stored at the moment.
    """
    of_target = _buckets_of(call, f"{kind.name}:{target}")
    async with _counted(call, [*of_target, *_buckets_of_caller(call)]):
        await _store(call, store)


async def store_change(
    call: Call, address: str, *, store: Callable[[Connection, bool], Awaitable[None]], notified: str = ""
) -> MailDelay | None:
    """Do the same for a change that also takes effect if its link to `address` is sent later.

    `store` gets whether the link is sent now. `notified` is an address that gets a notice, which counts too.
    """
    async with counted_link(call, address, notified=notified) as wait_s:
        await _store(call, lambda conn: store(conn, wait_s == 0))
    return MailDelay(next_mail_s=math.ceil(wait_s)) if wait_s > 0 else None


@asynccontextmanager
async def counted_link(call: Call, address: str, *, notified: str = "") -> AsyncIterator[float]:
    """Count a link that verifies an address. Yield the seconds after which it may be sent.

    Everybody can use up the rate of an address, so it only delays the link. Raises `TooManyCodes` for the other
    rates. If the block fails, nothing counts.
    """
    of_address = _buckets_of(call, f"{VERIFY_LINK.name}:{address}")
    others = [*(_buckets_of(call, f"notice:{notified}") if notified else []), *_buckets_of_caller(call)]
    counted = [*of_address, *others]
    counts = await _count(call, counted)
    wait_s, found = _wait_s(counts[: len(of_address)]), counts[len(of_address) :]
    if wait_s > 0:  # Nothing was counted.
        counted = others
        found = found if _wait_s(found) > 0 or not others else await _count(call, others)
    _check(found)
    async with _taken_back_if_it_fails(call, counted):
        yield wait_s


@asynccontextmanager
async def _counted(call: Call, buckets: Sequence[Bucket]) -> AsyncIterator[None]:
    """Count a code. If the block fails, it does not count. Raises `TooManyCodes`."""
    _check(await _count(call, buckets))
    async with _taken_back_if_it_fails(call, buckets):
        yield


async def _count(call: Call, buckets: Sequence[Bucket]) -> list[Count]:
    counts = await call.services.limiter.count_all(buckets, app_id=call.app_id, tag=_TAG)
    add_rate_headers(call.request, counts)
    return counts


def _wait_s(counts: Sequence[Count]) -> float:
    return max((count.wait_s for count in counts), default=0)


def _check(counts: Sequence[Count]) -> None:
    if (wait_s := _wait_s(counts)) > 0:
        raise TooManyCodes(retry_after_s=wait_s)


@asynccontextmanager
async def _taken_back_if_it_fails(call: Call, buckets: Sequence[Bucket]) -> AsyncIterator[None]:
    try:
        yield
    except BaseException:
        if buckets:
            await CountedTogether(call.services, call.request, buckets, call.app_id, _TAG).take_back()
        raise


async def _store(call: Call, store: Callable[[Connection], Awaitable[None]]) -> None:
    try:
        async with call.services.database.transaction() as conn:
            await store(conn)
    except TransactionConflict:
        raise
    except StoreError as error:
        raise CodeNotSent from error


def _buckets_of(call: Call, recipient: str) -> list[Bucket]:
    digest = sha256_hex(recipient.encode())[:32]
    return [Bucket(name, call.app_limits.rate(name), digest) for name in ("email_minute", "email_day")]


def _buckets_of_caller(call: Call) -> list[Bucket]:
    """Return the bucket of the client address. That of an app's server is not counted: all users share it."""
    if call.caller.server_key is not None:
        return []
    address = client_network(call.request, call.services.settings.trusted_proxies)
    return [Bucket("email_address", call.app_limits.rate("email_address"), address)]
