"""Upgrades: a subscription that replaces another one of the same user.

The states are `awaiting_approval → new_active → old_cancelled → refunded → done`, or `abandoned` if the user has
not approved it. If a subscription has several upgrades, the first one that is paid replaces it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from storage.postgres.connection import one
from storage.postgres.database import Connection

State = Literal["awaiting_approval", "new_active", "old_cancelled", "refunded", "done", "abandoned"]
UNDECIDED = frozenset[State]({"awaiting_approval", "abandoned"})
"""The states in which the old subscription is not replaced."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    upgrade_id: str
    old_row: str
    new_row: str
    bp_product_id: str
    """The target."""
    state: State


_COLUMNS = "upgrade_id, old_row, new_row, bp_product_id, state"
_ADD = f"""
insert into wallet_upgrades (upgrade_id, app_id, old_row, new_row, bp_product_id, state, created_at, changed_at)
values ($1, $2, $3, $4, $5, 'awaiting_approval', $6, $6) returning {_COLUMNS}
"""


async def add(
    conn: Connection, app_id: str, *, upgrade_id: str, old_row: str, new_row: str, bp_product_id: str, now: datetime
) -> Upgrade:
    """Store an upgrade. `conn` is in a transaction that has locked the user and abandoned other upgrades."""
    return Upgrade(**one(await conn.fetchrow(_ADD, upgrade_id, app_id, old_row, new_row, bp_product_id, now)))


_OF_OLD = f"""
select {_COLUMNS} from wallet_upgrades where app_id = $1 and old_row = $2
order by state = 'abandoned', created_at desc, upgrade_id desc
"""
_TO_NEW = f"select {_COLUMNS} from wallet_upgrades where app_id = $1 and new_row = $2"


async def of_old(conn: Connection, app_id: str, *, old_row: str) -> list[Upgrade]:
    """Return the upgrades of a subscription: the one that is not abandoned first, then the newest first."""
    return [Upgrade(**row) for row in await conn.fetch(_OF_OLD, app_id, old_row)]


async def to_new(conn: Connection, app_id: str, *, new_row: str) -> Upgrade | None:
    """Return the upgrade to a subscription. `None`: it is not the target of one."""
    row = await conn.fetchrow(_TO_NEW, app_id, new_row)
    return None if row is None else Upgrade(**row)


_SET_STATE = "update wallet_upgrades set state = $3, changed_at = $4 where app_id = $1 and upgrade_id = $2"


async def set_state(conn: Connection, app_id: str, *, upgrade: Upgrade, to: State, now: datetime) -> None:
    """Set the state of an upgrade. `conn` is in a transaction that has locked the user."""
    await conn.execute(_SET_STATE, app_id, upgrade.upgrade_id, to, now)


_IS_UNFINISHED = """
select exists (select from wallet_refunds where app_id = $1 and subscription_row = $2
        and state in ('pending', 'accepted'))
    or exists (select from wallet_upgrades where app_id = $1 and old_row = $2
        and state in ('new_active', 'old_cancelled', 'refunded'))
"""


async def is_unfinished(conn: Connection, app_id: str, *, old_row: str) -> bool:
    """Return whether steps of the upgrade, or refunds, remain for a replaced subscription."""
    unfinished: bool = await conn.fetchval(_IS_UNFINISHED, app_id, old_row)
    return unfinished
