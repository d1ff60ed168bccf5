"""The audit log: a row for each change by an operator or a command, stored in the transaction of the change."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

from storage.postgres.connection import Row
from storage.postgres.database import Connection
from storage.postgres.directions import directed
from streams.wire.codec import dumps

ROOT = "root"
"""The actor of changes with the root token."""
OPERATOR = "operator"
"""The kind of subject for changes of operators and their tokens."""
SUBJECTS = frozenset({OPERATOR, "job", "mismatch", "order", "suppression", "user", "webhook", "withdrawal"})
"""The kinds of subjects that are not configs."""
Action = Literal[
    "asset.adjust",
    "asset.grant",
    "board.reward",
    "config.delete",
    "config.put",
    "config.rollback",
    "config.try",
    "events.retry",
    "job.drop",
    "job.retry",
    "mail.test",
    "mismatch.resolve",
    "operator.add",
    "operator.change",
    "operator.remove",
    "operator.rotate",
    "operator.sign_in",
    "order.refund",
    "stream.cancel",
    "suppression.add",
    "suppression.remove",
    "user.ban",
    "user.end_sessions",
    "user.erase",
    "user.export",
    "user.export_read",
    "user.freeze",
    "user.recover",
    "user.unban",
    "users.make",
    "webhook.replay",
    "withdrawal.settle",
]
_FIELD_BYTES = 16 * 1024
"""Maximum size of a field of `before` or `after`."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who makes a change, and through which request."""

    actor: str
    """`root`, `command`, or the name of an operator."""
    operator_id: str | None = None
    request_id: str = ""
    address: str = ""
    """The client's address."""
    reason: str = ""
    """Why the author makes the change."""

    def with_reason(self, reason: str) -> "Origin":
        """Return the origin with `reason`, unless it has one."""
        return self if self.reason else replace(self, reason=reason)


COMMAND = Origin("command")
"""The origin of changes from the command line, by a user with access to the database."""
RESERVED_NAMES = frozenset({ROOT, COMMAND.actor, "admin", "seed"})
"""Names of other authors, in lower case. `admin` is the default author of revisions by the root token, `seed`
that of the configs of a development server."""


class Subject(NamedTuple):
    """The subject of a change. `app_id` is `None` if the change concerns the whole deployment."""

    app_id: str | None
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A stored row."""

    audit_id: int
    changed_at: datetime
    origin: Origin
    action: str
    subject: Subject
    before: dict[str, Any] | None
    after: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on rows. `None` matches all."""

    app_id: str | None = None
    actor: str | None = None
    """The actor, or the id of an operator."""
    action: str | None = None
    kind: str | None = None
    name: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """The time before which the change was made."""
    of_operators: bool | None = None
    """Whether the change concerns operators and their tokens."""


_RECORD = """
insert into audit
    (actor, operator_id, action, app_id, kind, name, before, after, reason, request_id, address)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
returning audit_id
"""
_FIND = f"""
select * from audit
where ($1::bigint is null or audit_id {{compare}} $1)
    and ($2::text is null or app_id = $2)
    and ($3::text is null or actor = $3 or operator_id = $3)
    and ($4::text is null or action = $4)
    and ($5::text is null or kind = $5)
    and ($6::text is null or name = $6)
    and ($7::timestamptz is null or changed_at >= $7)
    and ($8::timestamptz is null or changed_at < $8)
    and ($9::boolean is null or (kind = '{OPERATOR}') = $9)
order by audit_id {{order}}
limit $10
"""


async def record_change(
    conn: Connection,
    origin: Origin,
    *,
    action: Action,
    subject: Subject,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> int:
    """Store a change in the transaction of `conn`, and return the id of its row.

    `before` and `after` describe the subject without secrets. They are `None` where it does not exist. A field of
    more than 16 KiB is replaced by its size.
    """
    audit_id: int = await conn.fetchval(
        _RECORD,
        origin.actor,
        origin.operator_id,
        action,
        *subject,
        _bounded(before),
        _bounded(after),
        origin.reason,
        origin.request_id,
        origin.address,
    )
    return audit_id


async def entries(
    conn: Connection, filters: Filters, *, oldest_first: bool = False, before_id: int | None, limit: int
) -> list[AuditEntry]:
    """Return the rows that match, the newest first unless `oldest_first`; with `before_id`, those behind it."""
    statement = directed(_FIND, oldest_first=oldest_first)
    conditions = (
        filters.app_id,
        filters.actor,
        filters.action,
        filters.kind,
        filters.name,
        filters.since,
        filters.until,
        filters.of_operators,
    )
    return [_entry(row) for row in await conn.fetch(statement, before_id, *conditions, limit)]


async def delete_expired(conn: Connection, *, days: int, limit: int) -> int:
    """Delete at most `limit` rows older than `days` and return their number. Less than 30 days count as 30."""
    deleted: int = await conn.fetchval("select delete_expired_audit($1, $2)", days, limit)
    return deleted


def _bounded(fields: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if fields is None:
        return None
    sizes = {name: len(dumps(value)) for name, value in fields.items()}
    return {
        name: value if sizes[name] <= _FIELD_BYTES else {"omitted_bytes": sizes[name]}
        for name, value in fields.items()
    }


def _entry(row: Row) -> AuditEntry:
    return AuditEntry(
        audit_id=row["audit_id"],
        changed_at=row["changed_at"],
        origin=Origin(row["actor"], row["operator_id"], row["request_id"], row["address"], row["reason"]),
        action=row["action"],
        subject=Subject(row["app_id"], row["kind"], row["name"]),
        before=row["before"],
        after=row["after"],
    )
