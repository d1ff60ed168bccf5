"""Streams that have ended, put together from their attempts at vendors, for operators."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from storage.postgres.connection import Row
from storage.postgres.database import Connection

Kind = Literal["conversation", "tts", "pronunciation"]
Outcome = Literal["answered", "failed", "canceled"]
_SCANNED = 5_000
"""The most streams that one page looks at, so that a rare user or outcome does not read the whole table."""


class Filter(NamedTuple):
    """Selects streams. `None` matches all."""

    uid: str | None
    outcome: Outcome | None
    kind: Kind | None


@dataclass(frozen=True, slots=True)
class EndedStream:
    stream_id: str
    uid: str
    kind: Kind
    outcome: Outcome
    strategy: str
    vendor: str
    model: str | None
    """Empty if the strategy names none; `None` in rows of earlier versions."""
    attempts: int
    failed: int
    elapsed_ms: int
    """The time of the longest attempt."""
    price: str
    """In the app's currency."""
    stored_at: datetime


class EndedPage(NamedTuple):
    streams: list[EndedStream]
    next: str | None
    """The id after which the list continues."""


_FIRST, _LAST = "", "z"
"""Texts before and after all ids. With them, each plan reads a range of the index."""
# The primary key has the order of this list, and the partitions follow each other in it.
_PAGE = """
with grouped as (
    select stream_id, min(uid) as uid, min(created_at) as stored_at, count(*) as attempts,
        count(*) filter (where outcome = 'failed') as failed, max(elapsed_ms) as elapsed_ms,
        trim_scale(sum(price))::text as price, bool_or(stage = 'assess') as assesses,
        bool_or(stage in ('llm', 'stt')) as converses,
        bool_or(outcome = 'won' and stage in ('llm', 'assess')) as answers,
        bool_or(outcome = 'won' and stage = 'tts') as speaks,
        (array_agg(array[strategy, vendor, model] order by stage in ('llm', 'assess') desc, outcome = 'won' desc,
            number desc))[1:1] as answering
    from attempts where app_id = $1 and stream_id < $2 and stream_id >= $3
    group by stream_id order by stream_id desc limit $4
), scanned as (
    select *, case when assesses then 'pronunciation' when converses then 'conversation' else 'tts' end as kind,
        case when answers or (speaks and not converses) then 'answered' when failed > 0 then 'failed'
            else 'canceled' end as outcome
    from grouped
)
select matching.*, total.scanned, total.last_id
from (select count(*) as scanned, min(stream_id) as last_id from scanned) total
left join (
    select * from scanned where ($5::text is null or uid = $5) and ($6::text is null or outcome = $6)
    and ($7::text is null or kind = $7) order by stream_id desc limit $8
) matching on true
order by matching.stream_id desc
"""


async def page(
    conn: Connection, app_id: str, *, which: Filter, since: datetime | None, before: str | None, size: int
) -> EndedPage:
    """Return the next streams of an app, the newest first. `since`: by the clock of the machine."""
    oldest = _FIRST if since is None else f"{round(since.timestamp() * 1000):012x}"
    scanned = size + 1 if which == (None, None, None) else _SCANNED
    rows = await conn.fetch(
        _PAGE, app_id, before or _LAST, oldest, scanned, which.uid, which.outcome, which.kind, size + 1
    )
    streams = [_stream(row) for row in rows if row["stream_id"] is not None]
    if len(streams) > size:
        return EndedPage(streams[:size], streams[size - 1].stream_id)
    return EndedPage(streams, rows[0]["last_id"] if rows[0]["scanned"] == scanned else None)


def _stream(row: Row) -> EndedStream:
    [[strategy, vendor, model]] = row["answering"]
    return EndedStream(
        stream_id=row["stream_id"],
        uid=row["uid"],
        kind=row["kind"],
        outcome=row["outcome"],
        strategy=strategy,
        vendor=vendor,
        model=model,
        attempts=row["attempts"],
        failed=row["failed"],
        elapsed_ms=row["elapsed_ms"],
        price=row["price"],
        stored_at=row["stored_at"],
    )
