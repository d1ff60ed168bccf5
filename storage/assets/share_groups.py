"""Share groups (§4.12): the owner of a subscription shares it with users who join by a code.

Members have no asset rows: their assets are derived from the owner's asset when they are read.
"""

import secrets
from dataclasses import dataclass, replace
from datetime import datetime

from storage.assets.assets import COLUMNS as ASSET_COLUMNS
from storage.assets.assets import Asset
from storage.postgres.connection import one
from storage.postgres.database import Connection
from streams.wire.errors import ItemNotFound, ServiceError
from streams.wire.ids import new_id, sha256_hex
from streams.wire.typed import typed_code

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base32, which has no letters that look like others."""
_LOOKS_LIKE = str.maketrans("OIL", "011", "-")
_CODE_CHARACTERS = 10


class ShareCodeNotFound(ItemNotFound):
    """No subscription that may be shared at the moment has this `share_code`."""

    def __init__(self) -> None:
        super().__init__("share_code is not a valid code")


class ShareGroupFull(ServiceError):
    """The share group has as many members as its quota allows, or more."""

    error_type = "share_group_limit"
    status = 400


@dataclass(frozen=True, slots=True)
class ShareGroup:
    group_id: str
    uid: str
    """The owner."""
    name: str
    subscription: str
    """Together with `name`, this identifies the asset of the owner."""
    code: str
    quota: int
    members: int = 0


def parse_code(text: str) -> str:
    """Return a code as it is stored. Case, spaces, dashes and letters that look like digits do not matter.

    Raises `ValueError` for a text that cannot be a code.
    """
    code = typed_code(text).upper().translate(_LOOKS_LIKE)
    if len(code) != _CODE_CHARACTERS or not set(_ALPHABET).issuperset(code):
        raise ValueError(f"must be {_CODE_CHARACTERS} letters and digits")
    return code


_COLUMNS = "group_id, uid, name, subscription, code, quota"
_PUT = f"""
insert into share_groups (group_id, app_id, uid, name, subscription, code, code_hash, quota, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (app_id, uid, name, subscription) do update set quota = excluded.quota
returning {_COLUMNS}
"""
_MEMBERS = "select count(*) from share_members where group_id = $1"


async def put(conn: Connection, app_id: str, uid: str, *, asset: Asset, quota: int, now: datetime) -> ShareGroup:
    """Set the quota of the group of an owner's asset, and return the group. A missing group is created.

    `conn` is in a transaction. Raises `ShareGroupFull` if the group has more members than the quota.
    """
    code = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_CHARACTERS))
    stored = await conn.fetchrow(
        _PUT, new_id(), app_id, uid, asset.name, asset.subscription, code, _digest(code), quota, now
    )
    row = one(stored)
    group = ShareGroup(**row, members=await conn.fetchval(_MEMBERS, row["group_id"]))
    if group.members > quota:
        raise ShareGroupFull(f"more users have joined than {quota}: {group.members}")
    return group


_LOCK = f"select {_COLUMNS} from share_groups where app_id = $1 and code_hash = $2 for update"


async def lock(conn: Connection, app_id: str, *, code: str) -> ShareGroup | None:
    """Return the group of a code. Nobody else joins it until the transaction of `conn` ends."""
    row = await conn.fetchrow(_LOCK, app_id, _digest(code))
    return None if row is None else ShareGroup(**row, members=await conn.fetchval(_MEMBERS, row["group_id"]))


_IS_MEMBER = "select exists (select from share_members where group_id = $1 and uid = $2)"
_JOIN = "insert into share_members (group_id, app_id, uid, joined_at) values ($1, $2, $3, $4)"


async def join(conn: Connection, app_id: str, uid: str, *, group: ShareGroup, quota: int, now: datetime) -> None:
    """Add a user to a locked group, unless the user is a member. Raises `ShareGroupFull` if the group is full."""
    if await conn.fetchval(_IS_MEMBER, group.group_id, uid):
        return
    if group.members >= min(quota, group.quota):
        raise ShareGroupFull("as many users have joined as the quota allows")
    await conn.execute(_JOIN, group.group_id, app_id, uid, now)


_SHARED = f"""
select group_id, {", ".join(f"asset.{column}" for column in ASSET_COLUMNS)}
from share_members member join share_groups using (group_id) join assets asset
    on asset.app_id = share_groups.app_id and asset.uid = share_groups.uid
    and asset.name = share_groups.name and asset.subscription = share_groups.subscription
where member.app_id = $1 and member.uid = $2 order by asset.name, group_id
"""


async def assets_of_member(conn: Connection, app_id: str, uid: str, *, now: datetime) -> list[Asset]:
    """Return the assets that owners share with a user, as assets of the user. They end with the original."""
    shared = [
        replace(Asset(*values), origin="share", receipt_id=group_id)
        for group_id, *values in await conn.fetch(_SHARED, app_id, uid)
    ]
    return [asset for asset in shared if asset.is_valid(now)]


_MOVE = """
update share_groups set name = $5, subscription = $6
where app_id = $1 and uid = $2 and name = $3 and subscription = $4
"""


async def move_group(
    conn: Connection, app_id: str, uid: str, *, old: tuple[str, str], new: tuple[str, str]
) -> None:
    """Move the group of a subscription to the one that replaces it. Both are pairs of asset and subscription."""
    await conn.execute(_MOVE, app_id, uid, *old, *new)


DIFFERENCES = """
select app_id, uid, 'share group ' || group_id, case
    when has_entry then format('has %s members, should have at most %s', members, quota)
    else 'shares an asset that has no entry' end
from (
    select g.*, (select count(*) from share_members m where m.group_id = g.group_id) as members, exists (
        select from asset_entries e
        where (e.app_id, e.uid, e.name, e.subscription) = (g.app_id, g.uid, g.name, g.subscription)) as has_entry
    from share_groups g) compared
where members > quota or not has_entry order by group_id limit $1
"""
"""Groups with too many members, and groups of an asset that was never granted to the owner."""


def _digest(code: str) -> str:
    return sha256_hex(code.encode())
