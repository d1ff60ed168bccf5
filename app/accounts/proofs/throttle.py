"""Limits on failed logins by password. They slow down guessing, but cannot be abused to lock a user out.

A password is counted as a failure before it is checked, because otherwise concurrent guesses could exceed the
limits. If it is right, the count is taken back. After many failures at one account, networks from which its user
has not logged in are refused.
"""

from collections.abc import Awaitable, Callable, Sequence

from app.accounts.errors import TooManyFailedLogins
from app.accounts.proofs import trace
from app.http.callers.addresses import client_network
from app.http.callers.limits import CountedTogether, add_rate_headers
from app.http.rows.endpoint import Call
from storage.accounts import login_networks
from storage.limits import Bucket, Count
from storage.postgres.database import Connection
from streams.wire.ids import sha256_hex

_TAG = "logins"
_NETWORK_BITS = 24
"""IPv4 addresses that share this many leading bits are one network. For IPv6 addresses, it is 64 bits."""

UserOf = Callable[[Connection], Awaitable[str | None]]
"""Returns the user of an account, or `None` if there is none."""


async def count_guess(call: Call, account: str, user_of: UserOf) -> CountedTogether:
    """Count a login to `account` as failed. Raises `TooManyFailedLogins`.

    The count is taken back if the password was right or was not checked.
    """
    buckets = _buckets(call, account)
    limiter = call.services.limiter
    counts = await limiter.count_all(buckets, app_id=call.app_id, tag=_TAG)
    *others, of_account = counts
    if of_account.wait_s > 0 and not _refused(others) and await _knows_network(call, user_of):
        buckets = buckets[:-1]
        counts = await limiter.count_all(buckets, app_id=call.app_id, tag=_TAG)
    add_rate_headers(call.request, counts)
    if refused := _refused(counts):
        for count in refused:
            trace.rate_exceeded(call, count, of="failed logins")
        raise TooManyFailedLogins(retry_after_s=max(count.wait_s for count in refused))
    return CountedTogether(call.services, call.request, buckets, call.app_id, _TAG)


async def remember_network(call: Call, conn: Connection, app_id: str, uid: str) -> None:
    """Remember the caller's network as one from which the user logs in."""
    if (network := _network(call)) is not None:
        now = call.services.clock.now(app_id)
        await login_networks.remember(conn, app_id, uid, network=network, now=now)


def _buckets(call: Call, account: str) -> list[Bucket]:
    """Return the buckets of a login. The address of an app's server is not counted, because all users share it.

    Logins to an account through the app's server are counted separately from logins by clients. Otherwise, anybody
    could exhaust the rate and lock the user out of the server, because a login through it has no known network.
    """
    rate, digest, network = call.app_limits.rate, sha256_hex(account.encode())[:32], _network(call)
    if network is None:
        return [Bucket("login_account", rate("login_account"), f"server:{digest}")]
    address = client_network(call.request, call.services.settings.trusted_proxies)
    return [
        Bucket("login_network", rate("login_network"), f"{digest}:{network}"),
        Bucket("login_address", rate("login_address"), address),
        Bucket("login_account", rate("login_account"), digest),
    ]


async def _knows_network(call: Call, user_of: UserOf) -> bool:
    network = _network(call)
    if network is None:
        return False
    async with call.services.database.connection() as conn:
        uid = await user_of(conn)
        return uid is not None and await login_networks.is_known(conn, call.app_id, uid, network=network)


def _refused(counts: Sequence[Count]) -> list[Count]:
    return [count for count in counts if count.wait_s > 0]


def _network(call: Call) -> str | None:
    """Return the network of the caller, or `None` for an app's server."""
    if call.caller.server_key is not None:
        return None
    return client_network(call.request, call.services.settings.trusted_proxies, ipv4_bits=_NETWORK_BITS)
