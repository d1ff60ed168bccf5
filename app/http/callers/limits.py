"""Rate limits of endpoints: by caller, and by the network of the client."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from aiohttp import web

from app.http.callers.addresses import client_network
from app.http.callers.caller import Caller
from app.services import Services
from storage.configs.kinds.limits import LIMITS, RATES, Limits
from storage.limits import Bucket, Count
from streams.wire.ids import sha256_hex

COUNTS: web.RequestKey[tuple[Count, ...]] = web.RequestKey("counts", tuple)
"""The rates that a request was counted against."""

_DIGEST_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class Limit:
    """A rate in the config kind `limits`. It is counted per user, or per client address without a user.

    A call of an app's server without a user is not counted, because all users of the app share its address. Like
    every call of such a server, it counts against the server's key. With `by`, the name of a field of the request,
    each value of that field is counted separately. With `together`, the handler counts those of users, by
    `count_together` with this tag. What is refused before that is not counted.

    With `per_address`, the handler counts the call per client address, if it has to be counted: with the tag
    `together` if there is one. Other responses only have the headers of the rate.
    """

    rate: str
    by: str | None = None
    together: str | None = None
    per_address: bool = False

    def __post_init__(self) -> None:
        if self.rate not in RATES:
            raise ValueError(f"limit must be one of {', '.join(sorted(RATES))}")


async def check(
    services: Services,
    app_limits: Limits,
    request: web.Request,
    caller: Caller,
    *,
    limit: Limit | None = None,
    value: object = None,
) -> None:
    """Count the call. Raises `RateLimited` (`api_rate_limit`) when a rate is exceeded.

    Calls of an app server count against its key. `limit` counts each `value` of its field separately.
    """
    if limit is not None and limit.per_address:
        await _report_uncounted(services, request, caller, limit)
    for name, who in _counted(services, request, caller, limit, value):
        (await _count(services, app_limits, request, caller, name=name, who=who)).check()


async def report(
    services: Services,
    app_limits: Limits,
    request: web.Request,
    caller: Caller,
    *,
    limit: Limit | None = None,
    value: object = None,
) -> None:
    """Give the response to a call that is not counted the same headers (`headers_of`) as if it were counted."""
    if limit is not None and limit.per_address:
        await _report_uncounted(services, request, caller, limit)
    for name, who in _counted(services, request, caller, limit, value):
        await _count(services, app_limits, request, caller, name=name, who=who, calls=0)
    if limit is not None and limit.together is not None and not limit.per_address:
        await report_together(services, app_limits, request, caller, rate=limit.rate, tag=limit.together)


async def report_together(
    services: Services, app_limits: Limits, request: web.Request, caller: Caller, *, rate: str, tag: str
) -> None:
    """Do the same as `report` for a call of a user that `count_together` would have counted."""
    if caller.server_key is None and caller.user_id is not None:
        bucket = Bucket(rate, app_limits.rate(rate), caller.user_id)
        counts = await services.limiter.count_all([bucket], app_id=caller.app_id, tag=tag, calls=0)
        add_rate_headers(request, counts)


async def check_address(
    services: Services, app_limits: Limits, request: web.Request, caller: Caller, *, name: str
) -> None:
    """Count the call under `name` per client address. Calls of an app server are not counted."""
    if caller.server_key is None:
        who = f"address:{client_network(request, services.settings.trusted_proxies)}"
        (await _count(services, app_limits, request, caller, name=name, who=who)).check()


async def _report_uncounted(services: Services, request: web.Request, caller: Caller, limit: Limit) -> None:
    """Give the response the headers of a rate that the handler counts."""
    if caller.server_key is not None:
        return
    app_id, network = caller.app_id, client_network(request, services.settings.trusted_proxies)
    # A link is called without an app's limits, but its rate is set in an app's config.
    rate = services.configs.singleton(LIMITS, app_id).rate(limit.rate)
    if limit.together is None:
        who = f"address:{network}"
        counts = [await services.limiter.count(rate, app_id=app_id, name=limit.rate, who=who, calls=0)]
    else:
        bucket = Bucket(limit.rate, rate, network)
        counts = await services.limiter.count_all([bucket], app_id=app_id, tag=limit.together, calls=0)
    add_rate_headers(request, counts)


def add_rate_headers(request: web.Request, counts: Sequence[Count]) -> None:
    """Add the headers of `counts` to the response. They replace earlier ones of the same rates."""
    names = {count.name for count in counts}
    request[COUNTS] = (*(count for count in request.get(COUNTS, ()) if count.name not in names), *counts)


def _counted(
    services: Services, request: web.Request, caller: Caller, limit: Limit | None, value: object
) -> Iterator[tuple[str, str]]:
    """Yield the name of each rate that counts the call, and who is counted under it."""
    if caller.server_key is not None:
        yield "server", f"key:{caller.server_key}"
    if limit is None or limit.together is not None or limit.per_address:
        return
    # The digest keeps keys short, whatever the request contains.
    of_value = "" if limit.by is None else f":{sha256_hex(str(value).encode())[:_DIGEST_CHARACTERS]}"
    if caller.user_id is not None:
        yield limit.rate, f"user:{caller.user_id}{of_value}"
    elif caller.server_key is None:
        yield limit.rate, f"address:{client_network(request, services.settings.trusted_proxies)}{of_value}"


async def _count(
    services: Services,
    app_limits: Limits,
    request: web.Request,
    caller: Caller,
    *,
    name: str,
    who: str,
    calls: Literal[0, 1] = 1,
) -> Count:
    rate = app_limits.rate(name)
    count = await services.limiter.count(rate, app_id=caller.app_id, name=name, who=who, calls=calls)
    add_rate_headers(request, [count])
    return count


@dataclass(frozen=True, slots=True)
class CountedTogether:
    """A call that was counted in several buckets."""

    services: Services
    request: web.Request
    buckets: Sequence[Bucket]
    app_id: str
    tag: str

    async def take_back(self) -> None:
        """Undo the count of the call, also in the headers of the response."""
        counts = await self.services.limiter.count_all(self.buckets, app_id=self.app_id, tag=self.tag, calls=-1)
        add_rate_headers(self.request, counts)


async def count_together(
    services: Services, request: web.Request, caller: Caller, buckets: Sequence[Bucket], *, tag: str
) -> CountedTogether:
    """Count the call in all `buckets`, or in none if one of them does not allow it. Raises `RateLimited`.

    All buckets that are ever counted together have the same `tag`.
    """
    counts = await services.limiter.count_all(buckets, app_id=caller.app_id, tag=tag)
    add_rate_headers(request, counts)
    for count in counts:
        count.check()
    return CountedTogether(services, request, buckets, caller.app_id, tag)


def headers_of(counts: Sequence[Count]) -> dict[str, str]:
    """Return `RateLimit-Policy` (the rates) and `RateLimit` (the remaining calls), as in the IETF's draft."""
    return {
        "RateLimit-Policy": ", ".join(
            f'"{count.name}";q={count.rate.count};w={math.ceil(count.rate.per_s)}' for count in counts
        ),
        "RateLimit": ", ".join(
            f'"{count.name}";r={count.remaining};t={math.ceil(count.reset_s)}' for count in counts
        ),
    }
