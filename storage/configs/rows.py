"""Rows of named configs: all revisions ever written, and the newest revision of each config."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from storage.configs.kinds.apps import APPS
from storage.postgres.connection import Row
from storage.postgres.database import Connection

SortField = Literal["app", "kind", "name", "author", "updated_at"]


class ConfigKey(NamedTuple):
    app_id: str
    kind: str
    name: str


class ConfigFilter(NamedTuple):
    """Selects configs. The fields are parameters of the SQL statement; `None` matches all."""

    app_id: str | None = None
    kind: str | None = None
    text: str | None = None
    """Contained in the app, kind, name, author or comment."""


class ConfigOrder(NamedTuple):
    """The order of a list, by one field and then by app, kind and name."""

    field: SortField = "app"
    descending: bool = False


@dataclass(frozen=True, slots=True)
class ListedConfig:
    """The newest revision of an active config, without its value."""

    key: ConfigKey
    revision: int
    author: str
    comment: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Revision:
    """A stored revision. `value` has `{"secret": true}` for each secret; `secrets` has the ciphertexts.

    The keys of `secrets` are JSON Pointers.
    """

    key: ConfigKey
    revision: int
    value: Any
    secrets: dict[str, str]
    author: str
    comment: str
    created_at: datetime
    deleted: bool


_CHANGED = "select * from newest_configs where change > $1 order by change"
_NEWEST = "select * from newest_configs where app_id = $1 and kind = $2 and name = $3"
_ACTIVE = """
select * from newest_configs
where value is not null and ($1::text is null or app_id = $1) and ($2::text is null or kind = $2)
order by app_id, kind, name
"""
_MATCHING = """
from newest_configs
where value is not null and ($1::text is null or app_id = $1) and ($2::text is null or kind = $2)
    and ($3::text is null
        or strpos(lower(concat_ws(E'\\n', app_id, kind, name, author, comment)), lower($3)) > 0)
"""
_COUNT = f"select count(*) {_MATCHING}"
_ORDER = ('app_id collate "C"', 'kind collate "C"', 'name collate "C"')
_FIELDS: Mapping[SortField, str] = {
    "app": 'app_id collate "C"',
    "kind": 'kind collate "C"',
    "name": 'name collate "C"',
    "author": 'author collate "C"',
    "updated_at": "created_at",
}
_CIPHERTEXTS = """
select ciphertexts.value from newest_configs, jsonb_each_text(secrets) as ciphertexts
where newest_configs.value is not null
"""
_APPS = "select app_id, value is null as deleted, created_at from newest_configs where kind = $1 order by app_id"
_AT = "select * from config_revisions where app_id = $1 and kind = $2 and name = $3 and revision = $4"
_HISTORY = """
select * from config_revisions
where app_id = $1 and kind = $2 and name = $3 and ($4::integer is null or revision < $4)
order by revision desc limit $5
"""
_INSERT = """
insert into config_revisions (app_id, kind, name, revision, value, secrets, author, comment)
values ($1, $2, $3, $4, $5, $6, $7, $8)
"""
_POINT = """
with counted as (update config_changes set change = change + 1 returning change)
insert into configs (app_id, kind, name, revision, change) select $1, $2, $3, $4, change from counted
on conflict (app_id, kind, name) do update set revision = excluded.revision, change = excluded.change
"""


async def lock_changes(conn: Connection) -> None:
    """Prevent other transactions from changing configs until this one ends."""
    await conn.execute("select from config_changes for update")


async def changed_since(conn: Connection, change: int) -> list[tuple[int, Revision]]:
    """Return the newest revision of every config that changed after `change`, each with its change number."""
    return [(row["change"], _revision(row)) for row in await conn.fetch(_CHANGED, change)]


async def newest(conn: Connection, key: ConfigKey) -> Revision | None:
    """Return the newest revision, even if it deletes the config."""
    row = await conn.fetchrow(_NEWEST, *key)
    return None if row is None else _revision(row)


async def revision_at(conn: Connection, key: ConfigKey, *, revision: int) -> Revision | None:
    row = await conn.fetchrow(_AT, *key, revision)
    return None if row is None else _revision(row)


async def history(conn: Connection, key: ConfigKey, *, before: int | None, limit: int) -> list[Revision]:
    """Return revisions, newest first. If `before` is given, only those with a lower number."""
    return [_revision(row) for row in await conn.fetch(_HISTORY, *key, before, limit)]


async def active(conn: Connection, app_id: str | None, *, kind: str | None) -> list[Revision]:
    return [_revision(row) for row in await conn.fetch(_ACTIVE, app_id, kind)]


async def listed(
    conn: Connection, which: ConfigFilter, *, order: ConfigOrder, offset: int, size: int | None
) -> list[ListedConfig]:
    """Return active configs without their values. `size`: at most so many; `None`: all."""
    direction = "desc" if order.descending else "asc"
    by = ", ".join(f"{column} {direction}" for column in (_FIELDS[order.field], *_ORDER))
    statement = f"""
    select app_id, kind, name, revision, author, comment, created_at {_MATCHING} order by {by} offset $4 limit $5
    """
    rows = await conn.fetch(statement, *which, offset, size)
    return [ListedConfig(ConfigKey(app, kind, name), *rest) for app, kind, name, *rest in rows]


async def count(conn: Connection, which: ConfigFilter) -> int:
    """Return the number of active configs."""
    found: int = await conn.fetchval(_COUNT, *which)
    return found


async def ciphertexts(conn: Connection) -> list[str]:
    """Return the encrypted secrets of all active configs."""
    return [row["value"] for row in await conn.fetch(_CIPHERTEXTS)]


async def all_apps(conn: Connection) -> dict[str, datetime | None]:
    """Return all apps that have ever existed. The value is the time at which a deleted app was deleted."""
    rows = await conn.fetch(_APPS, APPS.name)
    return {row["app_id"]: row["created_at"] if row["deleted"] else None for row in rows}


async def append(
    conn: Connection,
    key: ConfigKey,
    *,
    revision: int,
    value: Any,
    secrets: dict[str, str],
    author: str,
    comment: str,
) -> None:
    """Insert a revision and make it the newest. A `value` of `None` deletes the config."""
    await conn.execute(_INSERT, *key, revision, value, secrets, author, comment)
    await conn.execute(_POINT, *key, revision)


def _revision(row: Row) -> Revision:
    return Revision(
        key=ConfigKey(row["app_id"], row["kind"], row["name"]),
        revision=row["revision"],
        value=row["value"],
        secrets=row["secrets"],
        author=row["author"],
        comment=row["comment"],
        created_at=row["created_at"],
        deleted=row["value"] is None,
    )
