"""The trace of a failed login: what was checked, what was seen and what was allowed, for support.

The client gets one text for all reasons of a failure. Operators read the trace in the admin API.
"""

from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol, Self

import structlog
from aiohttp import web

from app.http.callers.addresses import client_network
from app.http.rows.endpoint import Call
from storage.accounts import login_failures
from storage.accounts.codes import CodeRefused
from storage.accounts.identities import SECRET_IDS, Identity
from storage.limits import Count
from streams.wire.errors import ServiceError, StoreError, Unavailable

log = structlog.get_logger()

_MAX_STEPS = 30
_MAX_CHARACTERS = 500
_RATE = "login_failures"
_UNTRACED = (StoreError, Unavailable)
"""Errors that say nothing about the caller."""


class Note(Protocol):
    """Adds a step to a trace. The values contain no secrets, and nothing that identifies the user."""

    def __call__(self, name: str, /, *, seen: object = None, allowed: object = None) -> None: ...


class Steps:
    """What was checked, what was seen and what would be allowed, in the form of JSON."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(self, name: str, /, *, seen: object = None, allowed: object = None) -> None:
        if len(self.rows) < _MAX_STEPS:
            given = {"step": name, "seen": _short(seen), "allowed": _short(allowed)}
            self.rows.append({field: value for field, value in given.items() if value is not None})


class LoginTrace:
    """The steps of one login or bind. If its block fails, they are stored.

    Only `social_id` and the id of a logged-in user identify the user, because the erasure of a user finds failures
    by these columns (`storage/userdata/tables.py`).
    """

    __slots__ = ("_call", "_claimed", "_operation", "_platform", "_social_id", "_steps")

    def __init__(
        self, call: Call, operation: str, platform: str, *, claimed: Callable[[], str] | None = None
    ) -> None:
        """Begin a trace.

        `claimed` returns the id that the client claims to have, in the form that identities have, or an empty text
        if the id is secret. It is called if the block fails before `identify` is called.
        """
        self._call = call
        self._operation = operation
        self._platform = platform
        self._claimed = claimed
        self._social_id: str | None = None
        self._steps = Steps()
        call.request[_TRACE] = self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if isinstance(error, ServiceError) and not isinstance(error, _UNTRACED):
            with suppress(StoreError):
                await self._store(error)

    def add(self, name: str, /, *, seen: object = None, allowed: object = None) -> None:
        self._steps.add(name, seen=seen, allowed=allowed)

    def identify(self, identity: Identity) -> None:
        """Set the identity that was proven, or that the proof is for."""
        self._platform = identity.platform
        self._social_id = "" if identity.platform in SECRET_IDS else identity.social_id

    def _named(self) -> str:
        if self._social_id is not None:
            return self._social_id
        return "" if self._claimed is None else self._claimed()

    async def _store(self, error: ServiceError) -> None:
        call = self._call
        log.info("login.failed", operation=self._operation, platform=self._platform, error_type=error.error_type)
        if not await self._may_store():
            return
        if isinstance(error, CodeRefused):
            self.add("code", seen=error.seen, allowed=error.allowed)
        self.add("refused", seen=str(error))
        async with call.services.database.connection() as conn:
            await login_failures.add(
                conn,
                call.app_id,
                request_id=call.request_id,
                operation=self._operation,
                platform=self._platform,
                social_id=self._named(),
                uid=call.caller.user_id,
                error_type=error.error_type,
                steps=self._steps.rows,
                now=call.services.clock.now(call.app_id),
            )

    async def _may_store(self) -> bool:
        """Count the failure, so that a flood of them does not fill the table."""
        call = self._call
        if (key := call.caller.server_key) is not None:
            who = f"key:{key}"
        else:
            who = f"address:{client_network(call.request, call.services.settings.trusted_proxies)}"
        count = await call.services.limiter.count(
            call.app_limits.rate(_RATE), app_id=call.app_id, name=_RATE, who=who
        )
        return count.wait_s <= 0


_TRACE: web.RequestKey[LoginTrace] = web.RequestKey("login_trace", LoginTrace)


def step(call: Call, name: str, /, *, seen: object = None, allowed: object = None) -> None:
    """Add a step to the trace of the call, if it has one.

    The values contain no secrets, and nothing that identifies the user.
    """
    trace = call.request.get(_TRACE)
    if trace is not None:
        trace.add(name, seen=seen, allowed=allowed)


def identify(call: Call, identity: Identity) -> None:
    """Set the identity that the call claims or has proven in its trace, if it has one."""
    trace = call.request.get(_TRACE)
    if trace is not None:
        trace.identify(identity)


def rate_exceeded(call: Call, count: Count, *, of: str) -> None:
    """Add the step of an exceeded rate of the config kind `limits`. `of` names what the rate counts."""
    rate = count.rate
    step(call, f"rate {count.name}", seen=f"{count.used:.0f} {of}", allowed=f"{rate.count} in {rate.per_s:g} s")


def _short(value: object) -> object:
    """Return a value for JSON, with at most `_MAX_CHARACTERS` of each text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [_short(item) for item in list(value)[:_MAX_STEPS]]
    return "".join(char if char.isprintable() else " " for char in str(value)[:_MAX_CHARACTERS])
