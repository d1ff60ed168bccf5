"""Entries of the ledger of assets. Each stands for one event and is never changed."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Literal

from storage.configs.kinds.products import AssetType
from storage.postgres.database import Connection
from storage.postgres.directions import directed

EntryKind = Literal[
    "grant", "refund", "restore", "consume", "return", "end", "cancel", "suspend", "resume", "extend", "adjust"
]
"""`restore` undoes a `refund`, and `return` a `consume`. `extend` moves the end because the next payment has moved
or failed."""
AssetOrigin = Literal["purchase", "renewal", "upgrade", "trial", "share", "reward", "admin", "restore"]
Channel = Literal["webhook", "client", "reconciliation", "operator", "server"]


@dataclass(frozen=True, slots=True)
class Entry:
    """The change of one asset of a user by an event. The fields are columns."""

    key: str
    """The event, unique in the app: `card:<intent>`, `wallet:sale:<id>`, `admin:<id>`."""
    kind: EntryKind
    name: str
    type: AssetType
    subscription: str = ""
    quantity: int = 0
    """A number of units. It is negative in adjustments that take units away."""
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    """The end of a paid period, or the end that an operator sets. In a `cancel`, `suspend`, `resume` or `extend`,
    the end that counts from now on instead of that of the paid period, if there is one."""
    platform: str = ""
    product_id: str = ""
    bp_product_id: str = ""
    receipt_id: str = ""
    origin: AssetOrigin = "purchase"
    channel: Channel = "server"
    is_trial: bool = False
    renews: bool = False
    grace_ends_at: datetime | None = None
    """In a grant, the end that counts instead of that of its period, because the platform bills the next one
    later."""
    reverses: str = ""
    """In a `refund` or `restore` of a payment, the key of the grant of which it takes or restores units."""
    happened_at: datetime | None = None
    """When the event happened at the platform. `None`: when it was entered."""


COLUMNS = ", ".join(Entry.__slots__)
_VALUES = ", ".join(f"${number}" for number in range(4, 4 + len(Entry.__slots__)))
_ADD = f"""
insert into asset_entries (app_id, uid, entered_at, {COLUMNS}) values ($1, $2, $3, {_VALUES})
on conflict (app_id, key) do nothing returning entry_id
"""


async def add(conn: Connection, app_id: str, uid: str, *, entry: Entry, now: datetime) -> bool:
    """Insert an entry. Return `False` if the event has an entry already."""
    return await conn.fetchval(_ADD, app_id, uid, now, *astuple(entry)) is not None


_FIND = f"select {COLUMNS} from asset_entries where app_id = $1 and key = $2"


async def find(conn: Connection, app_id: str, *, key: str) -> Entry | None:
    """Return the entry of an event."""
    row = await conn.fetchrow(_FIND, app_id, key)
    return None if row is None else Entry(**row)


_REVERSING = f"""
select {COLUMNS} from asset_entries where app_id = $1 and reverses = $2 and reverses <> '' order by entry_id
"""


async def reversing(conn: Connection, app_id: str, *, grant: str) -> list[Entry]:
    """Return the refunds and restores of the grant with a key, the oldest first."""
    return [Entry(*row) for row in await conn.fetch(_REVERSING, app_id, grant)]


_OF_USERS = f"""
select app_id, uid, entered_at, {COLUMNS} from asset_entries
where (app_id, uid) in (select * from unnest($1::text[], $2::text[])) order by entry_id
"""


async def of_users(conn: Connection, users: Sequence[tuple[str, str]]) -> list[tuple[str, str, datetime, Entry]]:
    """Return the entries of users, named by app and uid, in their order: the app, the user and the time of each."""
    rows = await conn.fetch(_OF_USERS, *zip(*users, strict=True))
    return [(app_id, uid, entered_at, Entry(*values)) for app_id, uid, entered_at, *values in rows]


_GRANTS = f"""
select {COLUMNS} from asset_entries
where app_id = $1 and uid = $2 and subscription = $3 and kind = 'grant' order by ends_at, entry_id
"""


async def grants_of(conn: Connection, app_id: str, uid: str, *, subscription: str) -> list[Entry]:
    """Return the grants of a subscription, in the order of the ends of their periods."""
    return [Entry(*row) for row in await conn.fetch(_GRANTS, app_id, uid, subscription)]


_USED = """
select coalesce(sum(case kind when 'consume' then quantity else -quantity end), 0)::bigint from asset_entries
where app_id = $1 and uid = $2 and subscription = $3 and name = $4 and ends_at = $5
    and kind in ('consume', 'return')
"""


async def used_units(conn: Connection, app_id: str, uid: str, *, grant: Entry) -> int:
    """Return how many units of the period of a subscription's grant were used and not given back."""
    used: int = await conn.fetchval(_USED, app_id, uid, grant.subscription, grant.name, grant.ends_at)
    return used


@dataclass(frozen=True, slots=True)
class StoredEntry:
    entry_id: int
    entered_at: datetime
    entry: Entry


_PAGE = f"""
select entry_id, entered_at, {COLUMNS} from asset_entries
where app_id = $1 and uid = $2 and ($3::bigint is null or entry_id {{compare}} $3)
order by entry_id {{order}} limit $4
"""


async def page(
    conn: Connection, app_id: str, uid: str, *, oldest_first: bool = False, before: int | None, size: int
) -> list[StoredEntry]:
    """Return the entries of a user, the newest first unless `oldest_first`."""
    rows = await conn.fetch(directed(_PAGE, oldest_first=oldest_first), app_id, uid, before, size)
    return [StoredEntry(entry_id, entered_at, Entry(*values)) for entry_id, entered_at, *values in rows]
