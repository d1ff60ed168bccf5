"""The clock of an app, which development servers read and move."""

from datetime import UTC, datetime, timedelta
from functools import partial

from app.dev.area import DEVELOPMENT, require_app
from app.dev.sandbox import ask_sandbox
from app.http.rows.docs import Docs
from app.http.rows.endpoint import DEFAULT_APP, Call, Endpoint
from app.http.rows.inputs import Body, Query
from app.platforms.sandbox import sandbox_accounts
from app.services import Services
from storage.jobs.jobs import RunScheduled, enqueue
from streams.wire.codec import from_rfc3339, rfc3339
from streams.wire.errors import (
    AppNotFound,
    BackendUnavailable,
    DatabaseError,
    DatabaseUnavailable,
    InvalidParameter,
)
from streams.wire.model import Model
from vendors.catalog import Capability
from vendors.sandbox_clock import SandboxClock

_MAX_OFFSET = timedelta(days=36_600)
_CLOCK = Capability[None, SandboxClock]("sandbox_clock").by(SandboxClock)


class ClockQuery(Model):
    app: str = DEFAULT_APP


class ClockBody(Model):
    app: str
    at: str | None
    """The app's new time, as in RFC 3339. From then on it advances with real time. `null`: real time."""


class ClockReply(Model):
    """The app's clock."""

    app: str
    now: str
    offset_s: float
    """How far the app's time is ahead of real time."""


async def read_clock(call: Call, query: Query[ClockQuery]) -> ClockReply:
    """Read an app's clock.

    Only development servers have this endpoint.
    """
    return _reply(call, require_app(call.services, query.app))


async def move_clock(call: Call, body: Body[ClockBody]) -> ClockReply:
    """Move an app's clock.

    Sessions, retention and jobs follow it in all processes within a second. Jobs that run at fixed times run once.
    The app's accounts at the sandbox's payment platforms follow it too, so that their subscriptions are renewed.
    Signatures, server tokens, signed links and rate limits do not follow it. Only development servers have this
    endpoint.
    """
    services, app_id = call.services, require_app(call.services, body.app)
    offset_s = 0 if body.at is None else _offset_s(body.at)
    await services.clock.move(app_id, offset_s=offset_s)
    await _move_platforms(services, app_id, offset_s)
    async with services.database.transaction() as conn:
        await enqueue(conn, RunScheduled(), key=RunScheduled.task)
    return _reply(call, app_id)


async def _move_platforms(services: Services, app_id: str, offset_s: float) -> None:
    """Move the clocks of the app's accounts at the sandbox, if it runs."""
    if services.settings.sandbox_url is None:
        return
    for account_id in sandbox_accounts(services.configs, app_id):
        await ask_sandbox(services, _CLOCK, partial(SandboxClock.move, account_id=account_id, offset_s=offset_s))


def _offset_s(at: str) -> float:
    try:
        offset = from_rfc3339(at) - datetime.now(UTC)
    except ValueError:
        raise InvalidParameter("at must be a time such as 2026-01-31T08:00:00Z") from None
    if abs(offset) > _MAX_OFFSET:
        raise InvalidParameter("at must be within 100 years of the real time")
    return offset.total_seconds()


def _reply(call: Call, app_id: str) -> ClockReply:
    clock = call.services.clock
    return ClockReply(app=app_id, now=rfc3339(clock.now(app_id)), offset_s=clock.offset_s(app_id))


_MOVE = Docs(
    bodies={
        "A month later": {"app": "default", "at": "2027-01-31T08:00:00Z"},
        "Real time": {"app": "default", "at": None},
    },
)

CLOCK_ROUTES = [
    Endpoint("GET", "/dev/clock", read_clock, DEVELOPMENT, errors=(AppNotFound,)),
    Endpoint(
        "POST",
        "/dev/clock",
        move_clock,
        DEVELOPMENT,
        errors=(AppNotFound, BackendUnavailable, DatabaseError, DatabaseUnavailable),
        docs=_MOVE,
    ),
]
