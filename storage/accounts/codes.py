"""Codes that are sent to an address or a phone number, and prove that somebody can read messages there.

Only HMACs of codes are stored. Their key is derived from the master key, so the rows do not help to guess the six
digits of a short code. Times are those of the app's clock.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from storage.postgres.database import Connection, Database
from storage.secrets import Keyring
from streams.wire.codec import rfc3339
from streams.wire.errors import ServiceError
from streams.wire.ids import new_id
from streams.wire.typed import typed_code

TRIES = 5
"""How many wrong short codes may be entered per code and network."""
WRONG_PER_DAY = 20
"""How many wrong short codes may be entered per target and day, over all its codes: by each known network, and by
all others together."""
_DIGITS = 6
_LONG_BYTES = 32
_DAY = timedelta(days=1)
_NEWEST = 200
"""How many codes of a target are compared. The sending rate allows far fewer in a day."""


class CodeRefused(ServiceError):
    """A code is not accepted.

    `seen` and `allowed` are for the operator's trace. They do not contain the code. `wrong`: it is not a code that
    was sent, or was not compared with those that were sent, so it counts as a failed login.
    """

    status = 400

    def __init__(
        self, what: str, *, seen: str | None = None, allowed: str | None = None, wrong: bool = False
    ) -> None:
        super().__init__(what)
        self.seen = seen
        self.allowed = allowed
        self.wrong = wrong


class CodeEmpty(CodeRefused):
    """The code is missing or blank."""

    error_type = "account.code_empty"


class CodeOutOfDate(CodeRefused):
    """The code has expired, or a newer one was sent."""

    error_type = "account.code_out_of_date"


class CodeInvalid(CodeRefused):
    """The code is wrong or was used before, or too many wrong ones were entered."""

    error_type = "account.code_invalid"


@dataclass(frozen=True, slots=True)
class CodeKind:
    """What a code is for. A code of one kind is not accepted as another."""

    name: str
    long: bool = False
    """`True`: 32 random bytes, which identify the target. `False`: six digits, which are valid for one target."""
    newest_only: bool = True
    """Whether a new code replaces earlier ones for the same target."""


LOGIN_EMAIL = CodeKind("login_email")
SIGN_UP_EMAIL = CodeKind("sign_up_email")
PHONE = CodeKind("phone")
VERIFY_LINK = CodeKind("verify_link", long=True, newest_only=False)
RESET = CodeKind("password_reset", long=True)

_SHORT = (LOGIN_EMAIL, SIGN_UP_EMAIL, PHONE)
_SHORT_NAMES = [kind.name for kind in _SHORT]


@dataclass(frozen=True, slots=True)
class RightCode:
    """A code that is right. Another request may still use it first."""

    code_id: str
    app_id: str
    target: str
    uid: str | None
    """The user that the code was made for, if one was known."""
    field: str
    """The name of the field that contains the code in the request, for error messages."""


@dataclass(frozen=True, slots=True)
class _Row:
    code_id: str
    kind: str
    uid: str | None
    digest: bytes
    wrong: Mapping[str, int]
    expires_at: datetime
    closed_at: datetime | None

    def is_open(self, now: datetime) -> bool:
        return self.closed_at is None and now < self.expires_at


@dataclass(frozen=True, slots=True)
class Origin:
    """The network from which a code is entered, and those from which the user of its target has logged in."""

    network: str
    known: Collection[str] = ()

    def shares_tries_with(self, network: str) -> bool:
        """Return whether wrong codes from `network` count against the same number a day."""
        return network == self.network if self.network in self.known else network not in self.known


_ADD = """
insert into codes (code_id, app_id, kind, target, uid, digest, created_at, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)
"""
_LOCK = """
select code_id, kind, uid, digest, wrong, expires_at, closed_at from codes
where app_id = $1 and target = $2 and kind = any($3::text[]) and created_at > $4
order by code_id desc limit $5 for update
"""
_COUNT = """
update codes set wrong = jsonb_set(wrong, array[$2], to_jsonb(coalesce((wrong ->> $2)::int, 0) + 1))
where code_id = $1
"""
_FIND_LONG = """
select code_id, app_id, target, uid, expires_at, closed_at, exists (
    select from codes newer where newer.app_id = codes.app_id and newer.target = codes.target
    and newer.kind = codes.kind and newer.code_id > codes.code_id) as replaced
from codes where digest = $1
"""


class Codes:
    """Makes and checks codes."""

    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._pepper = keyring.derive("codes")

    async def issue(
        self,
        conn: Connection,
        app_id: str,
        kind: CodeKind,
        target: str,
        *,
        now: datetime,
        for_s: float,
        uid: str | None = None,
    ) -> str:
        """Store a new code and return it. `conn` is in the transaction that stores the job which sends the code."""
        code = secrets.token_urlsafe(_LONG_BYTES) if kind.long else f"{secrets.randbelow(10**_DIGITS):0{_DIGITS}}"
        digest = self._digest(kind, code, app_id=app_id, target=target)
        await conn.execute(
            _ADD, new_id(), app_id, kind.name, target, uid, digest, now, now + timedelta(seconds=for_s)
        )
        return code

    async def check(
        self,
        app_id: str,
        kind: CodeKind,
        target: str,
        *,
        code: str | None,
        origin: Origin,
        now: datetime,
        field: str = "verify_code",
    ) -> RightCode:
        """Return the short code of `target` if `code` is right. Raises one of the errors of this module.

        A wrong code is counted in a transaction of its own, so that it counts even if the request fails. If several
        requests have the right code, `use_code` decides which of them wins.
        """
        given = _given(code, field)
        digest = self._digest(kind, given, app_id=app_id, target=target)
        async with self._database.transaction() as conn:  # Its locks let requests compare codes one at a time.
            rows = [
                _Row(**row) for row in await conn.fetch(_LOCK, app_id, target, _SHORT_NAMES, now - _DAY, _NEWEST)
            ]
            of_kind = [row for row in rows if row.kind == kind.name]
            newest = of_kind[0] if of_kind else None
            is_open = newest is not None and newest.is_open(now)
            refusal = _too_many_wrong(rows, newest, origin, field=field) if newest is not None and is_open else None
            found = next((row for row in of_kind if hmac.compare_digest(row.digest, digest)), None)
            if newest is not None and is_open and refusal is None and found is None:
                await conn.execute(_COUNT, newest.code_id, origin.network)
        if refusal is not None:
            raise refusal
        if found is not None:
            _check_open(found, field=field, now=now, replaced=found is not newest)
            return RightCode(found.code_id, app_id, target, found.uid, field)
        others = {self._digest(other, given, app_id=app_id, target=target): other.name for other in _SHORT}
        seen = next((f"a {others[row.digest]} code" for row in rows if row.digest in others), "a wrong code")
        allowed = _allowed(kind, newest, origin, now=now)
        raise CodeInvalid(f"{field} is wrong", seen=seen, allowed=allowed, wrong=True)

    async def find(
        self, conn: Connection, kind: CodeKind, *, code: str | None, now: Callable[[str], datetime], field: str
    ) -> RightCode:
        """Find a long code, of any app and target. Raises one of the errors of this module.

        `now` returns the time of an app.
        """
        row = await conn.fetchrow(_FIND_LONG, self._digest(kind, _given(code, field)))
        if row is None:
            raise CodeInvalid(f"{field} is wrong", wrong=True)
        found = _Row(row["code_id"], kind.name, row["uid"], b"", {}, row["expires_at"], row["closed_at"])
        _check_open(found, field=field, now=now(row["app_id"]), replaced=kind.newest_only and row["replaced"])
        return RightCode(row["code_id"], row["app_id"], row["target"], row["uid"], field)

    def _digest(self, kind: CodeKind, code: str, *, app_id: str = "", target: str = "") -> bytes:
        """Return the HMAC of a code. A long code is found by its HMAC, which does not depend on the target."""
        parts = (kind.name, code) if kind.long else (kind.name, app_id, target, code)
        return hmac.digest(self._pepper, "\0".join(parts).encode(), hashlib.sha256)


def _given(code: str | None, field: str) -> str:
    given = typed_code(code or "")
    if not given:
        raise CodeEmpty(f"{field} is required", seen="no code")
    return given


def _too_many_wrong(rows: Sequence[_Row], newest: _Row, origin: Origin, *, field: str) -> CodeInvalid | None:
    """Return the error if no further code is accepted from `origin`."""
    tries = newest.wrong.get(origin.network, 0)
    in_a_day = sum(
        number for row in rows for network, number in row.wrong.items() if origin.shares_tries_with(network)
    )
    if tries < TRIES and in_a_day < WRONG_PER_DAY:
        return None
    seen = f"all tries of the newest {newest.kind} code" if tries >= TRIES else f"{in_a_day} wrong codes in a day"
    return CodeInvalid(
        f"{field} is not accepted after too many wrong ones; request a new one later",
        seen=seen,
        allowed=f"{TRIES} tries of a code, and {WRONG_PER_DAY} wrong codes in a day",
        wrong=True,
    )


def _check_open(row: _Row, *, field: str, now: datetime, replaced: bool) -> None:
    if row.closed_at is not None:
        seen = f"a code that was used or revoked at {rfc3339(row.closed_at)}"
        raise CodeInvalid(f"{field} was used or revoked", seen=seen)
    if replaced:
        raise CodeOutOfDate(f"{field} was replaced by a newer one", seen="an older code", allowed="the newest one")
    if not row.is_open(now):
        raise CodeOutOfDate(f"{field} has expired", seen=f"a code that expired at {rfc3339(row.expires_at)}")


def _allowed(kind: CodeKind, newest: _Row | None, origin: Origin, *, now: datetime) -> str:
    if newest is None:
        return f"none, because no {kind.name} code was sent in the last day"
    if newest.closed_at is not None:
        return f"none, because the newest {kind.name} code was used or revoked at {rfc3339(newest.closed_at)}"
    if not newest.is_open(now):
        return f"none, because the newest {kind.name} code expired at {rfc3339(newest.expires_at)}"
    return f"the newest {kind.name} code (try {newest.wrong.get(origin.network, 0) + 1} of {TRIES})"


_USE = "update codes set closed_at = $2 where code_id = $1 and closed_at is null returning true"


async def use_code(conn: Connection, code: RightCode, *, now: datetime) -> None:
    """Consume a code in the transaction of the change that it permits.

    Raises `CodeInvalid` if another request was first.
    """
    if await conn.fetchval(_USE, code.code_id, now) is None:
        seen = "a code that another request has used meanwhile"
        raise CodeInvalid(f"{code.field} was used before", seen=seen)


_REVOKE = """
update codes set closed_at = $3 where code_id in (
    select code_id from codes where app_id = $1 and closed_at is null and (uid = $2 or target in (
        select social_id from identities where app_id = $1 and uid = $2 and platform in ('email', 'phone')))
    and ($4::text is null or code_id <> $4)
    order by code_id desc for update)
"""


async def revoke(conn: Connection, app_id: str, uid: str, *, now: datetime, keep: str | None = None) -> None:
    """Revoke the codes for a user, and those that were sent to the user's address or phone number.

    The code with the id `keep` is not revoked.
    """
    await conn.execute(_REVOKE, app_id, uid, now, keep)
