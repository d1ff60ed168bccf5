"""Mismatches with platforms: events that no webhook has reported, and cases for operators."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from storage.operators.audit import Origin, Subject, record_change
from storage.postgres.connection import one
from storage.postgres.database import Connection
from storage.postgres.directions import directed

MismatchKind = Literal[
    "missed_event",
    "unreadable_event",
    "missed_entry",
    "amount_differs",
    "refund_refused",
    "refund_failed",
    "payout_unknown",
    "payout_returned",
    "payout_paid_after_failure",
    "payout_settled_otherwise",
]


REPAIRED: frozenset[MismatchKind] = frozenset({"missed_event", "missed_entry"})
"""The kinds that the server has repaired when it found them."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    mismatch_id: int
    app_id: str
    platform: str
    kind: MismatchKind
    subject: str
    detail: str
    found_at: datetime
    resolved_at: datetime | None
    """When an operator has settled the case."""
    resolved_by: str | None
    resolution: str | None
    """How, in the operator's words."""

    @property
    def is_open(self) -> bool:
        """Whether somebody has to look into it."""
        return self.resolved_at is None and self.kind not in REPAIRED


_ADD = """
insert into payment_mismatches (app_id, platform, kind, subject, detail, found_at) values ($1, $2, $3, $4, $5, $6)
"""


async def add(
    conn: Connection,
    app_id: str,
    *,
    platform: str,
    kind: MismatchKind,
    subject: str,
    detail: str = "",
    now: datetime,
) -> None:
    await conn.execute(_ADD, app_id, platform, kind, subject, detail, now)


_KNOWN = "select from payment_mismatches where app_id = $1 and platform = $2 and kind = $3 and subject = $4"


async def add_once(
    conn: Connection,
    app_id: str,
    *,
    platform: str,
    kind: MismatchKind,
    subject: str,
    detail: str,
    now: datetime,
) -> bool:
    """Add a mismatch unless its subject has one of its kind. Return whether it is new.

    `conn` is in a transaction that has locked the subject.
    """
    if await conn.fetchrow(_KNOWN, app_id, platform, kind, subject) is not None:
        return False
    await add(conn, app_id, platform=platform, kind=kind, subject=subject, detail=detail, now=now)
    return True


COLUMNS = ", ".join(Mismatch.__slots__)
_REPAIRED = ", ".join(f"'{kind}'" for kind in sorted(REPAIRED))
_IS_OPEN = f"(resolved_at is null and kind not in ({_REPAIRED}))"
_PAGE = f"""
select {COLUMNS} from payment_mismatches
where ($1::text is null or app_id = $1) and ($2::text is null or kind = $2)
    and ($3::boolean is null or {_IS_OPEN} <> $3) and ($4::bigint is null or mismatch_id {{compare}} $4)
order by mismatch_id {{order}} limit $5
"""


async def page(
    conn: Connection,
    *,
    of_app: str | None,
    kind: MismatchKind | None = None,
    resolved: bool | None = None,
    oldest_first: bool = False,
    before: int | None,
    size: int,
) -> list[Mismatch]:
    """Return mismatches of an app, or of all apps, the newest first unless `oldest_first`.

    `resolved`: only those into which nobody has to look any more, or only the others.
    """
    statement = directed(_PAGE, oldest_first=oldest_first)
    return [Mismatch(**row) for row in await conn.fetch(statement, of_app, kind, resolved, before, size)]


_COUNT_OPEN = f"select count(*) from (select from payment_mismatches where {_IS_OPEN} limit $1) found"


async def count_open(conn: Connection, *, at_most: int) -> int:
    """Return the number of mismatches into which somebody has to look."""
    count: int = await conn.fetchval(_COUNT_OPEN, at_most)
    return count


_LOCK = f"select {COLUMNS} from payment_mismatches where mismatch_id = $1 for update"
_RESOLVE = f"""
update payment_mismatches set resolved_at = now(), resolved_by = $2, resolution = $3
where mismatch_id = $1 returning {COLUMNS}
"""


async def resolve(conn: Connection, mismatch_id: int, *, origin: Origin) -> Mismatch | None:
    """Record that an operator has settled a case, and how: the reason of `origin`. Return `None` if there is none.

    A case that is settled stays as it is. `conn` is in a transaction.
    """
    row = await conn.fetchrow(_LOCK, mismatch_id)
    if row is None or row["resolved_at"] is not None:
        return None if row is None else Mismatch(**row)
    found = Mismatch(**one(await conn.fetchrow(_RESOLVE, mismatch_id, origin.actor, origin.reason)))
    subject = Subject(found.app_id, "mismatch", str(mismatch_id))
    before = {"kind": found.kind, "subject": found.subject, "resolved": False}
    await record_change(
        conn, origin, action="mismatch.resolve", subject=subject, before=before, after=before | {"resolved": True}
    )
    return found
