"""Admin API of failed logins, for support."""

from typing import Any

from app.admin.apps import require_app
from app.admin.area import FOR_EDITORS
from app.http.paging import IdCursor, Page, SortedQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Query
from storage.accounts import login_failures
from storage.accounts.login_failures import Filter, LoginFailure
from storage.errors import UnknownApp
from streams.wire.codec import rfc3339
from streams.wire.model import Model


class FailureQuery(SortedQuery[IdCursor]):
    app: str = "default"
    request_id: str | None = None
    """List only failures of the request with this `X-Request-Id`."""
    platform: str | None = None
    """List only failures with this platform."""
    social_id: str | None = None
    """List only failures with this id at the platform, as far as it is known. Email addresses and names are in
    lower case; phone numbers have the form +4915112345678."""
    user_id: str | None = None
    """List only failures of a user who was logged in."""


class FailureStep(Model):
    step: str
    seen: Any = None
    allowed: Any = None


class FailureRow(Model):
    failure_id: str
    app: str
    request_id: str
    operation: str
    """`login`, `signup`, `bind` or `reauthorize`."""
    platform: str
    social_id: str
    """The id that the client names or has proven, if it is known and not secret."""
    user_id: str | None = None
    error_type: str
    steps: list[FailureStep]
    """The checks, in order. The last step is the error that the client got. Secrets are omitted."""
    failed_at: str


class FailureList(Page[str]):
    """A page of the failures."""

    login_failures: list[FailureRow]


async def list_failures(call: Call, query: Query[FailureQuery]) -> FailureList:
    """List failed logins and binds.

    The newest comes first. Each has the steps that led to the failure; the client gets the same text for all
    reasons. Failures are deleted after `limits.login_failure_days`. The rate `login_failures` limits how many are
    stored.
    """
    require_app(call, query.app)
    which = Filter(query.app, query.request_id, query.platform, query.social_id, query.user_id)
    found = await call.services.reads.read(
        lambda conn: login_failures.listed(
            conn, which, oldest_first=query.oldest_first, before=query.before, size=query.size + 1
        )
    )
    page, further = page_of(found, query.size, lambda failure: failure.failure_id)
    return FailureList(next=further, login_failures=[_row(failure) for failure in page])


def _row(failure: LoginFailure) -> FailureRow:
    return FailureRow(
        failure_id=failure.failure_id,
        app=failure.app_id,
        request_id=failure.request_id,
        operation=failure.operation,
        platform=failure.platform,
        social_id=failure.social_id,
        user_id=failure.uid,
        error_type=failure.error_type,
        steps=[FailureStep.of(step) for step in failure.steps],
        failed_at=rfc3339(failure.failed_at),
    )


LOGIN_FAILURE_ROUTES = [
    Endpoint("GET", "/admin/api/login_failures", list_failures, FOR_EDITORS, errors=(UnknownApp,)),
]
