"""Failed logins with the steps that led to the failure, for support. They are kept for a limited time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from storage.accounts.emails import not_current
from storage.postgres.database import Connection
from storage.postgres.directions import directed
from streams.wire.ids import new_id


@dataclass(frozen=True, slots=True)
class LoginFailure:
    failure_id: str
    app_id: str
    request_id: str
    operation: str
    """`login`, `signup`, `bind` or `reauthorize`."""
    platform: str
    social_id: str
    """The id that the client claims or has proven, as far as it is known, in the form that identities have."""
    uid: str | None
    error_type: str
    steps: list[dict[str, Any]]
    """The checks in order: `step`, and what was `seen` and `allowed`. Secrets are omitted."""
    failed_at: datetime


class Filter(NamedTuple):
    """Selects failures. The fields are parameters of the SQL statement; `None` matches all."""

    app_id: str
    request_id: str | None
    platform: str | None
    social_id: str | None
    uid: str | None


_COLUMNS = "failure_id, app_id, request_id, operation, platform, social_id, uid, error_type, steps, failed_at"
_ADD = f"insert into login_failures ({_COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"


async def add(
    conn: Connection,
    app_id: str,
    *,
    request_id: str,
    operation: str,
    platform: str,
    social_id: str,
    uid: str | None,
    error_type: str,
    steps: Sequence[dict[str, Any]],
    now: datetime,
) -> None:
    await conn.execute(
        _ADD, new_id(), app_id, request_id, operation, platform, social_id, uid, error_type, list(steps), now
    )


def failures_of_user(app_id: str, uid: str) -> str:
    """Return a query of the ids of a user's failures, and of failures with an identity or an address of the user.

    `app_id` and `uid` are parameters of the query, such as `$1`.
    """
    return f"""
        select failure_id from login_failures where app_id = {app_id} and uid = {uid}
        union select failure_id from login_failures failure join (
            select platform, social_id from identities where app_id = {app_id} and uid = {uid}
            union select 'email', address from ({not_current(app_id, uid)}) as addresses) own
        on failure.social_id = own.social_id
        and failure.platform in (own.platform, own.platform || '_password', own.platform || '_code')
        where failure.app_id = {app_id}"""


_LIST = f"""
select {_COLUMNS} from login_failures
where app_id = $1 and ($2::text is null or request_id = $2) and ($3::text is null or platform = $3)
and ($4::text is null or social_id = $4) and ($5::text is null or uid = $5)
and ($6::text is null or failure_id {{compare}} $6)
order by failure_id {{order}} limit $7
"""


async def listed(
    conn: Connection, which: Filter, *, oldest_first: bool = False, before: str | None, size: int
) -> Sequence[LoginFailure]:
    """Return failures, the newest first unless `oldest_first`; with `before`, those that follow that one."""
    statement = directed(_LIST, oldest_first=oldest_first)
    return [LoginFailure(**row) for row in await conn.fetch(statement, *which, before, size)]
