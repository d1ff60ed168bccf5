"""Limits on failed logins. They slow down guessing, but cannot be abused to lock a user out.

A guess is a password or a code that a client sends for an account. Whether it is right is only revealed if the
limits allow one more failure at that moment. So concurrent guesses get no more answers than consecutive ones, and
right ones are never counted. After many failures at one account, networks from which its user has not logged in are
refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from app.accounts.errors import TooManyFailedLogins
from app.accounts.proofs import trace
from app.http.callers.addresses import client_network
from app.http.callers.limits import add_rate_headers
from app.http.rows.endpoint import Call
from storage.accounts import login_networks
from storage.accounts.identities import Identity
from storage.configs.kinds.limits import LIMITS, Rate
from storage.limits import Bucket, Count
from storage.postgres.database import Connection
from streams.wire.ids import sha256_hex

_TAG = "logins"
_NETWORK_BITS = 24
"""IPv4 addresses that share this many leading bits are one network. For IPv6 addresses, it is 64 bits."""
SERVER = "server"
"""The network of an app's servers."""


@dataclass(frozen=True, slots=True)
class Guess:
    """A password or a code that is about to be checked."""

    call: Call
    uid: str | None
    """The user of the account, or `None` if there is none."""
    buckets: Sequence[Bucket]
    """Those of the network, the client address and the account; only the last one for a call of an app's server."""

    @classmethod
    async def begin(cls, call: Call, identity: Identity, uid: str | None) -> Self:
        """Return a guess at the account of `identity`, whose user is `uid`. Raises `TooManyFailedLogins`.

        All identities of a user are one account.
        """
        account = f"{identity.platform}:{identity.social_id}" if uid is None else f"uid:{uid}"
        return await cls._begin(call, account, uid)

    @classmethod
    async def begin_of_caller(cls, call: Call) -> Self:
        """Return a guess of a logged-in user at the user's own password. Raises `TooManyFailedLogins`."""
        return await cls._begin(call, f"uid:{call.caller.user}", call.caller.user)

    @classmethod
    async def _begin(cls, call: Call, account: str, uid: str | None) -> Self:
        guess = cls(call, uid, _buckets(call, account))
        await guess.check()
        return guess

    async def check(self) -> None:
        """Raise `TooManyFailedLogins` if no further failure is allowed at the moment."""
        await self._count(0)

    async def finish(self, *, right: bool) -> None:
        """Count the guess if it was wrong. Must be called before the client learns whether it was right.

        Raises `TooManyFailedLogins` if other guesses have meanwhile used up the limits, even if this one is right.
        Otherwise, whoever sends many guesses at once would learn the outcome of all.
        """
        await self._count(0 if right else 1)

    async def _count(self, calls: Literal[0, 1]) -> None:
        call, buckets = self.call, self.buckets
        limiter = call.services.limiter
        counts = await limiter.count_all(buckets, app_id=call.app_id, tag=_TAG, calls=calls)
        *others, of_account = counts
        if of_account.wait_s > 0 and not _refused(others) and await self._knows_network():
            counts = await limiter.count_all(buckets[:-1], app_id=call.app_id, tag=_TAG, calls=calls)
        _check(call, counts)

    async def _knows_network(self) -> bool:
        network = _client_network(self.call)
        if network is None or self.uid is None:
            return False
        async with self.call.services.database.connection() as conn:
            return await login_networks.is_known(conn, self.call.app_id, self.uid, network=network)


async def count_wrong_link(call: Call) -> None:
    """Count a wrong code of a link per client address. Raises `TooManyFailedLogins`.

    Such a code is too long to be guessed, and identifies its account. So a right one is accepted whatever the count
    is.
    """
    if call.caller.server_key is None:
        # A page is opened without an app.
        bucket = _address_bucket(call, call.services.configs.singleton(LIMITS, call.app_id).rate("login_address"))
        _check(call, await call.services.limiter.count_all([bucket], app_id=call.app_id, tag=_TAG))


def network_of(call: Call) -> str:
    """Return the network of the caller. All calls of an app's servers have the same, which is no client's."""
    return _client_network(call) or SERVER


async def remember_network(call: Call, conn: Connection, app_id: str, uid: str) -> None:
    """Remember the caller's network as one from which the user logs in."""
    if (network := _client_network(call)) is not None:
        now = call.services.clock.now(app_id)
        await login_networks.remember(conn, app_id, uid, network=network, now=now)


def _buckets(call: Call, account: str) -> list[Bucket]:
    """Return the buckets of a guess. The address of an app's server is not counted, because all users share it.

    Guesses at an account through the app's server are counted separately from those of clients. Otherwise, anybody
    could exhaust the rate and lock the user out of the server, because a login through it has no known network.
    """
    rate, digest, network = call.app_limits.rate, sha256_hex(account.encode())[:32], _client_network(call)
    if network is None:
        return [Bucket("login_account", rate("login_account"), f"{SERVER}:{digest}")]
    return [
        Bucket("login_network", rate("login_network"), f"{digest}:{network}"),
        _address_bucket(call, rate("login_address")),
        Bucket("login_account", rate("login_account"), digest),
    ]


def _address_bucket(call: Call, rate: Rate) -> Bucket:
    return Bucket("login_address", rate, client_network(call.request, call.services.settings.trusted_proxies))


def _check(call: Call, counts: Sequence[Count]) -> None:
    add_rate_headers(call.request, counts)
    if refused := _refused(counts):
        for count in refused:
            trace.rate_exceeded(call, count, of="failed logins")
        raise TooManyFailedLogins(retry_after_s=max(count.wait_s for count in refused))


def _refused(counts: Sequence[Count]) -> list[Count]:
    return [count for count in counts if count.wait_s > 0]


def _client_network(call: Call) -> str | None:
    """Return the network of the caller, or `None` for an app's server."""
    if call.caller.server_key is not None:
        return None
    return client_network(call.request, call.services.settings.trusted_proxies, ipv4_bits=_NETWORK_BITS)
