"""Uses of quotas that differ from the entries of the ledger."""

from storage.differences import MAX, Difference
from storage.postgres.database import Connection

_DIFFERENCES = """
select app_id, uid, use.key, returned_at is not null as returned, missing, returns
from quota_uses use, lateral (
    select count(*) filter (where used.entry_id is null) as missing, count(back.entry_id) as returns
    from unnest(use.entry_keys) wanted(key)
    left join asset_entries used on used.app_id = use.app_id and used.key = wanted.key and used.kind = 'consume'
    left join asset_entries back on back.app_id = use.app_id and back.key = 'return:' || wanted.key) found
where missing > 0 or returns <> case when returned_at is null then 0 else cardinality(entry_keys) end
order by app_id, use.key limit $1
"""


async def find_differences(conn: Connection, *, limit: int = MAX) -> list[Difference]:
    """Compare all uses with their entries, and return at most `limit` that differ."""
    return [
        Difference(row["app_id"], row["uid"], f"quota of {row['key']}", _problem(**row))
        for row in await conn.fetch(_DIFFERENCES, limit)
    ]


def _problem(*, missing: int, returned: bool, returns: int, **_: str) -> str:
    if missing:
        return "has no entry"
    not_or_none, are = "" if returned else "not ", "are" if returns else "are not"
    return f"is {not_or_none}returned, but its entries {are}"
