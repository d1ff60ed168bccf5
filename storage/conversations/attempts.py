"""Rows of vendor attempts: the outcome, usage and price of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypedDict

from storage.clock import app_now
from storage.postgres.connection import one
from storage.postgres.database import Connection


class AttemptRow(TypedDict):
    """A row as JSON.

    The units depend on the stage: tokens, code points or seconds. `price` is in the app's currency. `model` is the
    vendor's name of the model; empty if the strategy names none, and `None` in rows of earlier versions.
    `started_ms`: when it began, after the arrival of the request. `None`: another process has made it.
    """

    number: int
    stage: str
    strategy: str
    vendor: str
    outcome: str
    message: str
    first_output_ms: int | None
    elapsed_ms: int
    input_unit: int
    output_unit: int
    price: str
    usage_source: str
    model: str | None
    started_ms: int | None


_COLUMNS = (
    "number, stage, strategy, vendor, outcome, message, first_output_ms, elapsed_ms, input_unit, output_unit,"
    " price, usage_source, model, started_ms"
)
_RECORD = (
    "number integer, stage text, strategy text, vendor text, outcome text, message text, first_output_ms integer,"
    " elapsed_ms integer, input_unit bigint, output_unit bigint, price numeric, usage_source text, model text,"
    " started_ms integer"
)


def insert_statement(app_id: str, stream_id: str, uid: str, rows: str, *, offset_s: str) -> str:
    """Return the statement that inserts rows. The arguments are the placeholders of its values.

    `offset_s` is the offset of the app's clock.
    """
    return (
        f"insert into attempts (app_id, stream_id, uid, created_at, {_COLUMNS})"
        f" select {app_id}, {stream_id}, {uid}, {app_now(offset_s)}, {_COLUMNS}"
        f" from jsonb_to_recordset({rows}::jsonb) as attempt ({_RECORD})"
        " on conflict do nothing"
    )


_INSERT = insert_statement("$1", "$2", "$3", "$4", offset_s="$5")


@dataclass(frozen=True, slots=True)
class StreamAttempts:
    """The attempts of a stream without a turn, written either immediately or from the retry queue."""

    app_id: str
    uid: str
    stream_id: str
    rows: Sequence[AttemptRow]
    clock_offset_s: float
    """The offset of the app's clock when the stream ended."""


async def add(conn: Connection, attempts: StreamAttempts) -> None:
    """Store the attempts of a stream. Rows that already exist are skipped, so the call can be repeated."""
    await conn.execute(
        _INSERT, attempts.app_id, attempts.stream_id, attempts.uid, attempts.rows, attempts.clock_offset_s
    )


class StoredAttempts(NamedTuple):
    """The attempts of a stream that has ended."""

    uid: str
    began_at: datetime
    attempts: list[dict[str, Any]]
    """In the order in which they began, with `price` as text."""


_OF_STREAM = f"""
select min(uid), min(created_at), jsonb_agg(to_jsonb(attempt) || jsonb_build_object('price', price::text)
    order by number)
from (select uid, created_at, {_COLUMNS} from attempts where app_id = $1 and stream_id = $2) attempt
"""


async def of_stream(conn: Connection, app_id: str, *, stream_id: str) -> StoredAttempts | None:
    """Return the attempts of a stream, or `None` if none are stored."""
    row = one(await conn.fetchrow(_OF_STREAM, app_id, stream_id))
    if row[2] is None:
        return None
    return StoredAttempts(
        row[0], row[1], [{key: attempt[key] for key in AttemptRow.__annotations__} for attempt in row[2]]
    )
