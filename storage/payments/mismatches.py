"""Mismatches with platforms: events that no webhook has reported, and cases for operators."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from storage.postgres.database import Connection

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


@dataclass(frozen=True, slots=True)
class Mismatch:
    mismatch_id: int
    app_id: str
    platform: str
    kind: MismatchKind
    subject: str
    detail: str
    found_at: datetime


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
_PAGE = f"""
select {COLUMNS} from payment_mismatches
where ($1::text is null or app_id = $1) and ($2::text is null or kind = $2)
    and ($3::bigint is null or mismatch_id < $3)
order by mismatch_id desc limit $4
"""


async def page(
    conn: Connection, *, of_app: str | None, kind: MismatchKind | None = None, before: int | None, size: int
) -> list[Mismatch]:
    """Return mismatches of an app, or of all apps, the newest first."""
    return [Mismatch(**row) for row in await conn.fetch(_PAGE, of_app, kind, before, size)]
