"""Operators: who may use the admin API besides the holder of the root token, and with which role.

A token is `parley_op_`, 32 random bytes in base62 and a checksum. Only its SHA-256 digest is stored. Each call
looks it up in PostgreSQL, so a change takes effect in all processes at the next call, with or without Valkey. The
duration of the lookup reveals nothing about a token, because nobody can choose the digest of a guess.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from storage.operators.audit import OPERATOR, RESERVED_NAMES, Origin, Subject, record_change
from storage.postgres.connection import Row, one
from storage.postgres.database import Connection, Database
from storage.tokens import digest, is_token, new_token
from streams.wire.codec import rfc3339
from streams.wire.errors import InvalidOperation, InvalidParameter, ItemNotFound, StoreError, listed
from streams.wire.ids import new_id

PREFIX = "parley_op_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")


class OperatorNotFound(ItemNotFound):
    """There is no operator with this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"operator {listed([name])} does not exist")


class OperatorExists(InvalidOperation):
    """There is already an operator with this name."""

    status = 409

    def __init__(self, name: str) -> None:
        super().__init__(f"operator {name} exists already")


class Role(StrEnum):
    """What an operator may do. Each role includes the ones before it."""

    VIEWER = "viewer"
    """Read what happens, but not the accounts of users, and the audit log except for changes of operators."""
    EDITOR = "editor"
    """Change configs and jobs, and read and change accounts of users and their money."""
    ADMIN = "admin"
    """Manage operators, read changes of them in the audit log, read what users say, and erase users."""

    def includes(self, other: "Role") -> bool:
        order = list(Role)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True)
class Operator:
    operator_id: str
    name: str
    role: Role
    created_at: datetime
    expires_at: datetime | None
    """When the token expires, or `None` if it does not."""
    last_used_at: datetime | None
    """When the token was last used; the time may be up to a minute too early. `None` if it was never used."""
    expired: bool


_COLUMNS = """
operator_id, name, role, created_at, expires_at, last_used_at, coalesce(expires_at <= now(), false) as expired
"""
_BY_DIGEST = f"""
select {_COLUMNS}, coalesce(last_used_at < now() - interval '1 minute', true) as use_is_due
from operators where digest = $1
"""
_TOUCH = """
update operators set last_used_at = now() where operator_id in (
    select operator_id from operators
    where operator_id = $1 and coalesce(last_used_at < now() - interval '1 minute', true)
    for update skip locked
)
"""
_ALL = f"select {_COLUMNS} from operators order by name"
_PAGE = f"""
select {_COLUMNS} from operators where $1::text is null or operator_id < $1 order by operator_id desc limit $2
"""
_LOCK = f"select {_COLUMNS} from operators where name = $1 for update"
_ADD = f"""
insert into operators (operator_id, name, role, digest, expires_at) values ($1, $2, $3, $4, $5)
on conflict (name) do nothing
returning {_COLUMNS}
"""
_CHANGE = f"""
update operators set role = $2, expires_at = $3 where operator_id = $1 returning {_COLUMNS}
"""
_ROTATE = f"""
update operators set digest = $2, expires_at = $3, totp_secret = null, totp_confirmed = false
where operator_id = $1 returning {_COLUMNS}
"""
_END_SESSIONS = "delete from operator_sessions where operator_id = $1"


async def find_by_token(database: Database, token: str) -> Operator | None:
    """Return the operator with this token, even if it has expired, or `None`. Records the use of the token."""
    if not is_token(token, PREFIX):
        return None
    async with database.connection() as conn:
        row = await conn.fetchrow(_BY_DIGEST, digest(token))
    if row is None:
        return None
    if row["use_is_due"] and not row["expired"]:
        with suppress(StoreError):  # A database that cannot be written to must not lock operators out.
            async with database.connection() as conn:
                await conn.execute(_TOUCH, row["operator_id"])
    return operator_of(row)


async def all_operators(conn: Connection) -> list[Operator]:
    """Return all operators, sorted by name."""
    return [operator_of(row) for row in await conn.fetch(_ALL)]


async def page_of_operators(conn: Connection, *, before_id: str | None, limit: int) -> list[Operator]:
    """Return operators, the newest first; with `before_id`, those with a smaller id."""
    return [operator_of(row) for row in await conn.fetch(_PAGE, before_id, limit)]


async def lock(conn: Connection, name: str) -> Operator:
    """Return the operator `name` and lock its row. Raises `OperatorNotFound`."""
    row = await conn.fetchrow(_LOCK, name)
    if row is None:
        raise OperatorNotFound(name)
    return operator_of(row)


async def add(
    conn: Connection, name: str, *, role: Role, expires_at: datetime | None, origin: Origin
) -> tuple[Operator, str]:
    """Add an operator and return it with its token. Raises `OperatorExists` if the name is taken."""
    if _NAME.fullmatch(name) is None:
        raise InvalidParameter("name must be 1 to 64 of A-Z a-z 0-9 . _ @ + - and begin with a letter or digit")
    if name.lower() in RESERVED_NAMES:
        raise InvalidParameter(f"name must not be {name}: the audit log uses this name")
    _check_future(expires_at)
    token = new_token(PREFIX)
    row = await conn.fetchrow(_ADD, new_id(), name, role.value, digest(token), expires_at)
    if row is None:
        raise OperatorExists(name)
    added = operator_of(row)
    await record_change(conn, origin, action="operator.add", subject=_subject(added), after=_described(added))
    return added, token


async def change(
    conn: Connection, current: Operator, *, role: Role, expires_at: datetime | None, origin: Origin
) -> Operator:
    """Change the role and the expiry of an operator, which the caller has locked. Its token stays the same.

    Another role ends its sessions.
    """
    if expires_at != current.expires_at:
        _check_future(expires_at)
    if role is not current.role:
        await conn.execute(_END_SESSIONS, current.operator_id)
    changed = operator_of(one(await conn.fetchrow(_CHANGE, current.operator_id, role.value, expires_at)))
    await record_change(
        conn,
        origin,
        action="operator.change",
        subject=_subject(current),
        before=_described(current),
        after=_described(changed),
    )
    return changed


async def rotate(
    conn: Connection, current: Operator, *, expires_at: datetime | None, origin: Origin
) -> tuple[Operator, str]:
    """Replace the token of an operator, which the caller has locked. The old token is invalid from the commit on.

    Its sessions end, and it sets up an authenticator again when it signs in.

    The new token keeps the expiry of the old one if `expires_at` is `None`.
    """
    expires_at = expires_at or current.expires_at
    _check_future(expires_at)
    token = new_token(PREFIX)
    await conn.execute(_END_SESSIONS, current.operator_id)
    rotated = operator_of(one(await conn.fetchrow(_ROTATE, current.operator_id, digest(token), expires_at)))
    await record_change(
        conn,
        origin,
        action="operator.rotate",
        subject=_subject(current),
        before=_described(current),
        after=_described(rotated),
    )
    return rotated, token


async def remove(conn: Connection, current: Operator, *, origin: Origin) -> None:
    """Remove an operator, which the caller has locked."""
    await conn.execute("delete from operators where operator_id = $1", current.operator_id)
    await record_change(
        conn, origin, action="operator.remove", subject=_subject(current), before=_described(current)
    )


def _check_future(expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= datetime.now(UTC):
        raise InvalidParameter("expires_at must be in the future")


def _subject(operator: Operator) -> Subject:
    return Subject(None, OPERATOR, operator.name)


def _described(operator: Operator) -> dict[str, Any]:
    expires_at = None if operator.expires_at is None else rfc3339(operator.expires_at)
    return {"operator_id": operator.operator_id, "role": operator.role.value, "expires_at": expires_at}


def operator_of(row: Row) -> Operator:
    """Return the operator of a row that has all of its columns."""
    return Operator(
        operator_id=row["operator_id"],
        name=row["name"],
        role=Role(row["role"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        last_used_at=row["last_used_at"],
        expired=row["expired"],
    )
