"""Idempotency keys: the response to a request is stored together with its effect, and repeated for its repeats.

They use real time, because moving the clock of an app does not change when clients repeat requests.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from storage.errors import AnswerNotKept, KeyReused, RequestRunning
from storage.postgres.database import Connection
from streams.wire.ids import new_id, sha256_hex

KEPT_HOURS = 48
CLAIM_S = 60
"""After this time, a repeat takes over the key of a call that has not ended, because its process has died or is
stuck."""
MAX_ANSWER_BYTES = 1024 * 1024


class RequestKey(NamedTuple):
    """The identity of a request. The fields are the first parameters of the SQL statements."""

    app_id: str
    digest: str
    """SHA-256 of the caller, the endpoint and the value of the header."""
    fingerprint: str
    """SHA-256 of the input."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right of one call to answer under a key."""

    key: RequestKey
    operation_id: str
    """The same for each repeat of the request, also after a failure or a crash."""
    claimed_at: datetime
    """Unique among all calls that have held the key."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A response. `body` is None if it has none."""

    status: int
    headers: dict[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class UsedKey:
    """A key that a request has used already."""

    fingerprint: str
    free: bool
    """Whether the last call under the key has failed."""
    running: bool
    """Whether a call holds the key. If it does not end in time, a repeat may take over."""
    status: int | None
    headers: dict[str, str] | None
    body: bytes | None
    too_large: bool

    def answer_to(self, key: RequestKey) -> StoredAnswer | None:
        """Return the stored response, or `None` if the key can be claimed.

        Raises `KeyReused`, `RequestRunning`, or `AnswerNotKept` if the response was too large to be stored.
        """
        if self.free:
            return None
        if self.fingerprint != key.fingerprint:
            raise KeyReused
        if self.too_large:
            raise AnswerNotKept
        if self.status is not None and self.headers is not None:
            return StoredAnswer(self.status, self.headers, self.body)
        if self.running:
            raise RequestRunning
        return None


_FIND = """
select fingerprint, claimed_at = '-infinity' as free, claimed_at > now() - make_interval(secs => $3) as running,
       status, headers, body, too_large
from idempotency_keys where app_id = $1 and digest = $2
"""


async def find(conn: Connection, key: RequestKey) -> UsedKey | None:
    row = await conn.fetchrow(_FIND, key.app_id, key.digest, CLAIM_S)
    return None if row is None else UsedKey(**row)


# The first of several concurrent calls inserts the row. The others wait for it and then find its `claimed_at`.
_CLAIM = """
insert into idempotency_keys as mine (app_id, digest, fingerprint, operation_id) values ($1, $2, $3, $4)
on conflict (app_id, digest) do update
set claimed_at = now(), fingerprint = $3, operation_id = left(mine.operation_id, 12) || right($4, 20)
where mine.answered_at is null and (
    mine.claimed_at = '-infinity'
    or mine.fingerprint = $3 and mine.claimed_at <= now() - make_interval(secs => $5))
returning operation_id, claimed_at
"""


async def claim(conn: Connection, key: RequestKey) -> Claim | None:
    """Claim the key for a call. Return `None` if another call holds it or has succeeded.

    `conn` must not be in a transaction, so that other calls see the claim immediately.
    """
    row = await conn.fetchrow(_CLAIM, *key, _operation_id(key), CLAIM_S)
    return None if row is None else Claim(key, **row)


def _operation_id(key: RequestKey) -> str:
    """Return a UUIDv7 for the first call under a key, as from `new_id`.

    Its last 20 digits are derived from the request, so that a repeat has the same digits even if a call with
    another input has failed under the key in between. The digits before them are the time of the first call, which
    the row stores.
    """
    of_request = sha256_hex("\n".join(key).encode())
    return f"{new_id()[:12]}7{of_request[:3]}a{of_request[3:18]}"


_STORE = """
update idempotency_keys
set answered_at = now(), status = $4, headers = $5, body = $6, too_large = $7
where app_id = $1 and digest = $2 and claimed_at = $3 and answered_at is null
returning true
"""


async def store(conn: Connection, held: Claim, *, answer: StoredAnswer) -> None:
    """Store the response to a call in the transaction of its effect.

    Raises `RequestRunning` if the call has taken so long that another one has taken over the key. The effect must
    then be rolled back.
    """
    body, too_large = answer.body, len(answer.body or b"") > MAX_ANSWER_BYTES
    stored = await conn.fetchval(
        _STORE,
        held.key.app_id,
        held.key.digest,
        held.claimed_at,
        answer.status,
        answer.headers,
        None if too_large else body,
        too_large,
    )
    if not stored:
        raise RequestRunning


async def release(conn: Connection, held: Claim) -> None:
    """Free the key of a call that has failed, unless its response is stored or another call has taken over.

    The row stays, so that a repeat has the same operation id.
    """
    await conn.execute(
        """
        update idempotency_keys set claimed_at = '-infinity'
        where app_id = $1 and digest = $2 and claimed_at = $3 and answered_at is null
        """,
        held.key.app_id,
        held.key.digest,
        held.claimed_at,
    )


_DELETE_EXPIRED = """
with expired as (
    select app_id, digest from idempotency_keys where created_at < now() - make_interval(hours => $1)
    order by created_at limit $2 for update skip locked
)
delete from idempotency_keys using expired
where idempotency_keys.app_id = expired.app_id and idempotency_keys.digest = expired.digest
"""


async def delete_expired(conn: Connection, *, limit: int) -> int:
    """Delete at most `limit` keys that are older than `KEPT_HOURS`. Return their number."""
    status: str = await conn.execute(_DELETE_EXPIRED, KEPT_HOURS, limit)
    return int(status.rpartition(" ")[2])
