"""Withdrawals (§2.10): their rows, and the entries of the amounts that are reserved for each user.

A withdrawal reserves its amount when it starts. It is paid or voided once. If the platform later returns a payment,
the withdrawal stays paid, and an entry records the return.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Literal

from storage.jobs.jobs import Job, enqueue
from storage.postgres.connection import Row
from storage.postgres.database import Connection
from streams.wire.money import Money

Status = Literal["START", "SUCCESS", "FAILED"]
EntryKind = Literal["reserve", "pay", "void", "return"]


class PayOut(Job):
    """Submit a withdrawal to its platform, or read its result back.

    The next round repeats it, so it needs few attempts.
    """

    task: ClassVar[str] = "pay_out"
    attempts: ClassVar[int] = 3
    timeout_s: ClassVar[float] = 60
    app_id: str
    withdrawal_id: str


class CheckPayouts(Job):
    """Ask the platforms about all open withdrawals that are due."""

    task: ClassVar[str] = "check_payouts"
    attempts: ClassVar[int] = 3


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A withdrawal. The fields are columns."""

    withdrawal_id: str
    app_id: str
    uid: str
    app_withdraw_id: str
    """The id that the app gave it."""
    request: dict[str, Any]
    """The body of the request that started it."""
    config: str
    platform: str
    merchant_id: str
    amount: int
    currency: str
    receiver: str | None
    """An email address. `None`: the user was deactivated."""
    created_at: datetime
    updated_at: datetime
    check_at: datetime | None
    """When to ask the platform. `None`: the withdrawal has ended."""
    status: Status = "START"
    reason: str = ""
    """Why it failed, or why it could not be submitted yet."""
    payout_id: str = ""
    """The platform's id. Empty: it is not known yet."""
    submitted_at: datetime | None = None
    """When the platform was first asked to pay."""
    paid_at: datetime | None = None
    unknown_at: datetime | None = None
    """When the result of this open withdrawal became unknown: the platform has forgotten our id, or the account
    that was asked is no longer configured. `None`: it can be read."""
    settled_at: datetime | None = None
    """When an operator has settled it. `None`: the platform reports the result."""
    account: str | None = None
    """The account of ours that was asked to pay. `None`: none yet, or it was not recorded."""

    @property
    def money(self) -> Money:
        return Money(self.amount, self.currency)


COLUMNS = ", ".join(Withdrawal.__slots__)
_INSERT = f"""
insert into withdrawals ({COLUMNS})
values ({", ".join(f"${number}" for number in range(1, 1 + len(Withdrawal.__slots__)))})
"""
_ENTER = """
insert into withdrawal_entries (withdrawal_id, app_id, uid, kind, config, amount, currency, entered_at)
select withdrawal_id, app_id, uid, $2, config, amount, currency, $3 from withdrawals where withdrawal_id = $1
on conflict do nothing returning true
"""


async def start(conn: Connection, withdrawal: Withdrawal) -> None:
    """Store a withdrawal, reserve its amount, and store the job that submits it.

    `conn` is in a transaction that has locked the user.
    """
    await conn.execute(_INSERT, *(getattr(withdrawal, column) for column in Withdrawal.__slots__))
    await conn.execute(_ENTER, withdrawal.withdrawal_id, "reserve", withdrawal.created_at)
    await pay_out_soon(conn, withdrawal)


async def pay_out_soon(conn: Connection, withdrawal: Withdrawal) -> None:
    """Store the job that submits or reads back a withdrawal, unless it waits already."""
    job = PayOut(app_id=withdrawal.app_id, withdrawal_id=withdrawal.withdrawal_id)
    await enqueue(conn, job, key=f"withdrawal:{withdrawal.withdrawal_id}")


_RESERVED = """
select coalesce(sum(amount), 0)::bigint from withdrawal_entries reserved
where app_id = $1 and uid = $2 and config = $3 and kind = 'reserve' and entered_at >= $4 and not exists (
    select from withdrawal_entries ended where ended.withdrawal_id = reserved.withdrawal_id and ended.kind = 'void')
"""


async def reserved(conn: Connection, app_id: str, uid: str, *, config: str, since: datetime) -> int:
    """Return the amount that a user has withdrawn since a time, in minor units. Failures do not count."""
    amount: int = await conn.fetchval(_RESERVED, app_id, uid, config, since)
    return amount


_BY_APP_ID = f"select {COLUMNS} from withdrawals where app_id = $1 and app_withdraw_id = $2"


async def find_by_app_id(conn: Connection, app_id: str, *, app_withdraw_id: str) -> Withdrawal | None:
    """Return the withdrawal of any user to which the app gave this id."""
    return _withdrawal(await conn.fetchrow(_BY_APP_ID, app_id, app_withdraw_id))


# An id of ours takes precedence over an equal id of the app.
_OF_USER = f"""
select {COLUMNS} from withdrawals
where app_id = $1 and uid = $2 and ($3::text is null or withdrawal_id = $3 or app_withdraw_id = $3)
order by withdrawal_id = $3 desc nulls last, created_at desc, withdrawal_id desc limit 1
"""


async def find_of_user(conn: Connection, app_id: str, uid: str, *, any_id: str | None) -> Withdrawal | None:
    """Return a withdrawal of a user by our id or the app's, or the newest one."""
    return _withdrawal(await conn.fetchrow(_OF_USER, app_id, uid, any_id))


_FIND = f"select {COLUMNS} from withdrawals where withdrawal_id = $1"


async def find(conn: Connection, withdrawal_id: str) -> Withdrawal | None:
    return _withdrawal(await conn.fetchrow(_FIND, withdrawal_id))


async def lock(conn: Connection, withdrawal_id: str) -> Withdrawal:
    """Return a withdrawal, which does not change until the transaction of `conn` ends."""
    row = await conn.fetchrow(f"{_FIND} for update", withdrawal_id)
    assert row is not None, "withdrawals are not deleted"
    return Withdrawal(**row)


_BY_PAYOUT = f"select {COLUMNS} from withdrawals where app_id = $1 and config = $2 and payout_id = any($3)"


async def find_by_payouts(conn: Connection, app_id: str, *, config: str, ids: Sequence[str]) -> list[Withdrawal]:
    """Return the withdrawals with these ids of the platform, or with these of ours."""
    rows = await conn.fetch(f"{_BY_PAYOUT} or (withdrawal_id = any($3) and app_id = $1)", app_id, config, ids)
    return [Withdrawal(**row) for row in rows]


_CONFIG_OF = """
select config from withdrawals
where app_id = $1 and (withdrawal_id = any($2) or (payout_id = any($2) and payout_id <> '')) limit 1
"""


async def config_of(conn: Connection, app_id: str, *, ids: Sequence[str]) -> str | None:
    """Return the config of the withdrawal with one of these ids of the platform, or of ours."""
    config: str | None = await conn.fetchval(_CONFIG_OF, app_id, ids)
    return config


_MARK_SUBMITTED = """
update withdrawals set submitted_at = coalesce(submitted_at, $3), account = $2
where withdrawal_id = $1 and (submitted_at is null or account = $2) returning true
"""


async def mark_submitted(conn: Connection, withdrawal_id: str, *, account: str, now: datetime) -> bool:
    """Record that an account is about to be asked to pay. Return `False` if another one may have paid already."""
    return await conn.fetchval(_MARK_SUBMITTED, withdrawal_id, account, now) is not None


async def mark_unknown(conn: Connection, withdrawal_id: str, *, since: datetime | None) -> None:
    """Record since when the result of an open withdrawal is unknown. It stays open until the result is known.

    `None`: the payout can be read.
    """
    await conn.execute("update withdrawals set unknown_at = $2 where withdrawal_id = $1", withdrawal_id, since)


_UPDATE = """
update withdrawals set payout_id = $2, reason = $3, updated_at = $4, check_at = $5 where withdrawal_id = $1
"""


async def update(
    conn: Connection, withdrawal_id: str, *, payout_id: str, reason: str, now: datetime, check_at: datetime
) -> None:
    """Record what is known of an open withdrawal."""
    await conn.execute(_UPDATE, withdrawal_id, payout_id, reason, now, check_at)


_END = """
update withdrawals set status = $2, payout_id = $3, reason = $4, updated_at = $5, paid_at = $6, settled_at = $7,
    check_at = null, unknown_at = null
where withdrawal_id = $1
"""


async def end(
    conn: Connection,
    withdrawal_id: str,
    *,
    payout_id: str,
    reason: str,
    paid_at: datetime | None,
    now: datetime,
    by_operator: bool,
) -> None:
    """End an open withdrawal, which `conn` has locked: as paid if there is a `paid_at`, otherwise as void."""
    status, kind = ("FAILED", "void") if paid_at is None else ("SUCCESS", "pay")
    await conn.execute(_ENTER, withdrawal_id, kind, now)
    settled_at = now if by_operator else None
    await conn.execute(_END, withdrawal_id, status, payout_id, reason, now, paid_at, settled_at)


async def enter_return(conn: Connection, withdrawal_id: str, *, now: datetime) -> bool:
    """Enter that the platform has returned a payment. Return `False` if that is entered already."""
    return await conn.fetchval(_ENTER, withdrawal_id, "return", now) is not None


DIFFERENCES = """
select app_id, uid, 'withdrawal ' || withdrawal_id, case
    when expected = '' then 'does not match its entries'
    when status <> expected then format('status is %s, should be %s', status, expected)
    when is_open then format('has ended as %s, but is read back', status)
    else 'is in progress, but never read back' end
from (
    select w.*, check_at is not null as is_open, (
        select case
            when bool_or(e.kind = 'reserve') is not true then ''
            when bool_or((e.app_id, e.uid, e.config, e.amount, e.currency)
                is distinct from (w.app_id, w.uid, w.config, w.amount, w.currency)) then ''
            when bool_or(e.kind = 'pay') then 'SUCCESS'
            when bool_or(e.kind = 'return') then ''
            when bool_or(e.kind = 'void') then 'FAILED'
            else 'START' end
        from withdrawal_entries e where e.withdrawal_id = w.withdrawal_id) as expected
    from withdrawals w) compared
where status <> expected or is_open <> (status = 'START') order by withdrawal_id limit $1
"""
"""Withdrawals whose state does not follow from their entries."""
_DUE = f"""
update withdrawals set check_at = $2 where withdrawal_id in (
    select withdrawal_id from withdrawals where app_id = $1 and check_at <= $3 order by check_at limit $4
    for update skip locked)
returning {COLUMNS}
"""


async def take_due(
    conn: Connection, app_id: str, *, now: datetime, next_check: datetime, limit: int
) -> list[Withdrawal]:
    """Return open withdrawals of an app that are due, and make them due again at `next_check`."""
    return [Withdrawal(**row) for row in await conn.fetch(_DUE, app_id, next_check, now, limit)]


def _withdrawal(row: Row | None) -> Withdrawal | None:
    return None if row is None else Withdrawal(**row)
