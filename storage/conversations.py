"""Conversations and their records (§2.12). Rows store object keys instead of links, because links expire."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, Literal, NamedTuple, Self

import asyncpg

from storage.attempts import AttemptRow, insert_statement
from storage.errors import ConversationNotFound, TurnRunning
from storage.heartbeats import Heartbeat
from storage.postgres import Connection, Database
from streams.wire.codec import dumps
from streams.wire.errors import StoreError
from streams.wire.owned import Owned

CONVERSATION = Owned(ConversationNotFound)
RecordStatus = Literal["running", "complete", "incomplete", "interrupted", "failed"]


@dataclass(frozen=True, slots=True)
class Conversation:
    conversation_id: str
    last_record_id: int
    record_count: int
    record_token: int
    running: bool
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Record:
    """A turn of a conversation. `content` is JSON: the list of messages of §2.12, with `key` instead of `url`.

    It is PostgreSQL's text form of a `jsonb`, with one space after each colon and comma.
    """

    record_id: int
    status: RecordStatus
    strategy: str
    content: bytes
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Answered:
    """The outcome of a turn: its status, and the assistant's message unless there is none."""

    status: RecordStatus
    strategy: str
    message: dict[str, Any] | None
    input_token: int
    output_token: int
    tokens_estimated: bool


class NewTurn(NamedTuple):
    """A turn to be opened. The fields are the parameters of the SQL statement, in their order."""

    app_id: str
    conversation_id: str
    uid: str
    content: str
    """The messages, as JSON text."""
    stream_id: str
    longest_s: float
    """Maximum duration of a stream. A record that has been `running` for longer is taken over."""
    process: str


@dataclass(frozen=True, slots=True)
class ClosedTurn:
    """A turn to be closed: everything that is written at its end, either immediately or from the retry queue."""

    app_id: str
    uid: str
    conversation_id: str
    record_id: int
    stream_id: str
    answered: Answered
    attempts: list[AttemptRow]

    @classmethod
    def of(cls, value: dict[str, Any]) -> Self:
        """Return the instance for which `asdict` returned `value`."""
        return cls(**{**value, "answered": Answered(**value["answered"])})


_STATE = """
select exists (select from conversation_records where app_id = $1 and conversation_id = $2 and status = 'running')
from conversations where app_id = $1 and conversation_id = $2 and uid = $3
"""


async def is_running(conn: Connection, app_id: str, uid: str, conversation_id: str) -> bool | None:
    """Return whether a turn of the conversation is running; `None` if the user has no such conversation."""
    running: bool | None = await conn.fetchval(_STATE, app_id, conversation_id, uid)
    return running


_FIND = """
select conversation_id, last_record_id, record_count, record_token, created_at, updated_at,
       exists (select from conversation_records r where r.app_id = c.app_id
               and r.conversation_id = c.conversation_id and r.status = 'running') as running
from conversations c where app_id = $1 and conversation_id = $2 and uid = $3
"""


async def find(conn: Connection, app_id: str, uid: str, conversation_id: str) -> Conversation | None:
    row = await conn.fetchrow(_FIND, app_id, conversation_id, uid)
    return Conversation(**row) if row else None


_OVERVIEW = """
select c.conversation_id, last_record_id, record_count, record_token, c.created_at, c.updated_at,
       coalesce(newest.status = 'running', false) as running,
       coalesce(left(oldest.content -> 0 -> 'content' -> 0 ->> 'text', 80), '') as first_words
from conversations c
left join conversation_records newest on newest.app_id = c.app_id
    and newest.conversation_id = c.conversation_id and newest.record_id = c.last_record_id
left join conversation_records oldest on oldest.app_id = c.app_id
    and oldest.conversation_id = c.conversation_id and oldest.record_id = 1
where c.app_id = $1 and c.uid = $2
  and ($3::timestamptz is null or (c.updated_at, c.conversation_id) < ($3, $4::text))
order by c.updated_at desc, c.conversation_id desc limit $5
"""


async def overview(
    conn: Connection, app_id: str, uid: str, *, before: tuple[datetime, str] | None, size: int
) -> list[tuple[Conversation, str]]:
    """Return the user's conversations, each with its first words, most recently updated first.

    `before` is the last update and the id of the conversation after which the list begins.
    """
    rows = [dict(row) for row in await conn.fetch(_OVERVIEW, app_id, uid, *(before or (None, None)), size)]
    return [
        (Conversation(**row), first_words) for row in rows if (first_words := row.pop("first_words")) is not None
    ]


_DELETE = """
with gone as (
    delete from conversations where app_id = $1 and conversation_id = $2 and uid = $3 returning true
)
select array(
    select key #>> '{}' from conversation_records,
        jsonb_path_query(content, '$[*].content[*].*.key') as key
    where app_id = $1 and conversation_id = $2
) from gone
"""


async def delete(conn: Connection, app_id: str, uid: str, conversation_id: str) -> list[str] | None:
    """Delete a conversation with its records. Return the keys of its objects, or `None` if it does not exist."""
    keys: list[str] | None = await conn.fetchval(_DELETE, app_id, conversation_id, uid)
    return keys


# One record at a time, because the size of a compressed value is known only once it is read: the records behind the
# last one are not read at all.
_PAGE = """
with recursive page as (
    select *, octet_length(content)::bigint as size_bytes, 1 as number from (
        select record_id, status, strategy, convert_to(content::text, 'UTF8') as content, created_at, updated_at
        from conversation_records
        where app_id = $1 and conversation_id = $2 and record_id <= $3 order by record_id desc limit 1
    ) as newest
    union all
    select older.*, page.size_bytes + octet_length(older.content), page.number + 1
    from page, lateral (
        select record_id, status, strategy, convert_to(content::text, 'UTF8') as content, created_at, updated_at
        from conversation_records
        where app_id = $1 and conversation_id = $2 and record_id < page.record_id order by record_id desc limit 1
    ) as older
    where page.number < $4 and page.size_bytes < $5
)
select record_id, status, strategy, content, created_at, updated_at from page
where size_bytes <= $5 or number = 1 order by number
"""


async def page(
    conn: Connection, app_id: str, conversation_id: str, *, newest: int, size: int, most_bytes: int
) -> list[Record]:
    """Return at most `size` records, newest first, starting at record id `newest`.

    They have at most `most_bytes` of content together, but one is returned whatever its size.
    """
    rows = await conn.fetch(_PAGE, app_id, conversation_id, newest, size, most_bytes)
    return [Record(**row) for row in rows]


_OPEN = """
with turn as (
    insert into conversations (app_id, conversation_id, uid, last_record_id, record_count)
    values ($1, $2, $3, 1, 1)
    on conflict (app_id, conversation_id) do update
    set last_record_id = conversations.last_record_id + 1, record_count = conversations.record_count + 1,
        updated_at = now()
    where conversations.uid = excluded.uid
    returning last_record_id
), left_running as (
    update conversation_records set status = 'incomplete', updated_at = now()
    where app_id = $1 and conversation_id = $2 and status = 'running'
    and created_at <= now() - make_interval(secs => $6) returning 1
)
insert into conversation_records (app_id, conversation_id, record_id, status, content, stream_id, process)
select $1, $2, turn.last_record_id, 'running', $4, $5, $7
from turn, (select count(*) from left_running) as cleared  -- read first, so that its index entry is gone
returning stream_id, record_id
"""


async def open_turns(conn: Connection, turns: Sequence[NewTurn]) -> dict[str, int]:
    """Store the user's message of each turn as the next record, with status `running`, in one transaction.

    Creates conversations that do not exist. Returns the record ids by stream id, without those turns whose
    conversation belongs to another user. A record that has been `running` for longer than a stream can last
    becomes `incomplete`; a younger one raises `UniqueViolationError`. Rows are locked in the order of
    conversations, so that concurrent calls cannot deadlock.
    """
    return dict(await conn.fetchmany(_OPEN, sorted(turns)))


async def open_turn(conn: Connection, turn: NewTurn) -> int:
    """Open one turn and return its record id.

    Raises `TurnRunning` and, if the conversation belongs to another user, `ConversationNotFound`.
    """
    try:
        opened = await open_turns(conn, [turn])
    except asyncpg.UniqueViolationError:
        raise TurnRunning from None
    if not opened:
        raise ConversationNotFound(turn.conversation_id)
    return opened[turn.stream_id]


_PROCESS = """
select process from conversation_records where app_id = $1 and conversation_id = $2 and status = 'running'
"""
_END_LEFT = """
update conversation_records set status = 'incomplete', updated_at = now()
where app_id = $1 and conversation_id = $2 and status = 'running' and process = $3
"""


async def end_dead_turn(database: Database, heartbeat: Heartbeat, app_id: str, conversation_id: str) -> bool:
    """Mark the running turn as `incomplete` if its process is dead, and return whether it is dead.

    No database connection is held while `heartbeat` queries the stores.
    """
    async with database.connection() as conn:
        process = await conn.fetchval(_PROCESS, app_id, conversation_id)
    try:
        if not process or not await heartbeat.dead([process]):
            return False
    except StoreError:
        return False
    async with database.connection() as conn:
        await conn.execute(_END_LEFT, app_id, conversation_id, process)
    return True


_END = """
update conversation_records set status = 'incomplete', updated_at = now()
where app_id = $1 and conversation_id = $2 and stream_id = $3 and status = 'running'
"""


async def end_turns(conn: Connection, turns: Sequence[NewTurn]) -> None:
    """Mark those of `turns` that are still running as `incomplete`."""
    await conn.executemany(_END, sorted((turn.app_id, turn.conversation_id, turn.stream_id) for turn in turns))


_RUNS = """
select exists (select from conversation_records where app_id = $1 and conversation_id = $2 and status = 'running'
               and created_at > now() - make_interval(secs => $3))
"""


async def turn_runs(conn: Connection, app_id: str, conversation_id: str, *, longest_s: float) -> bool:
    """Return whether the conversation has a `running` record that is younger than `longest_s`."""
    runs: bool = await conn.fetchval(_RUNS, app_id, conversation_id, longest_s)
    return runs


_CLOSE = f"""
with asked as ({insert_statement("$1", "$4", "$11", "$12")}), closed as (
    update conversation_records
    set status = case status when 'running' then $5 else status end, strategy = $6, content = content || $7::jsonb,
        input_token = $8, output_token = $9, tokens_estimated = $10, updated_at = now()
    where app_id = $1 and conversation_id = $2 and record_id = $3 and stream_id = $4
    and (status = 'running' or status = 'incomplete' and strategy = '')
    returning status, input_token + output_token as tokens
)
update conversations set record_token = record_token + closed.tokens, updated_at = now()
from closed where app_id = $1 and conversation_id = $2 returning $4, closed.status
"""  # noqa: S608 - the inserted text is constant


async def close_turns(conn: Connection, turns: Sequence[ClosedTurn]) -> dict[str, RecordStatus]:
    """Store the outcomes of `turns` in their records, and their vendor attempts, in one transaction.

    Returns the new status of each record by stream id. That is the requested status, or `incomplete` if another
    process has ended the turn because it considered this process dead; the answer is stored in that case too,
    because only one stream writes to a record. Streams whose record is already closed or was deleted are missing
    from the result. Rows are locked in the order of conversations.
    """
    values = [
        (
            turn.app_id,
            turn.conversation_id,
            turn.record_id,
            turn.stream_id,
            turn.answered.status,
            turn.answered.strategy,
            dumps([turn.answered.message] if turn.answered.message else []).decode(),
            turn.answered.input_token,
            turn.answered.output_token,
            turn.answered.tokens_estimated,
            turn.uid,
            dumps(turn.attempts).decode(),
        )
        for turn in turns
    ]
    values.sort(key=itemgetter(0, 1))
    return dict(await conn.fetchmany(_CLOSE, values))


async def close_turn(conn: Connection, turn: ClosedTurn) -> RecordStatus | None:
    """Close one turn. Return the new status of its record, or `None` if `close_turns` would omit it."""
    return (await close_turns(conn, [turn])).get(turn.stream_id)


_STATUS = """
select status from conversation_records
where app_id = $1 and conversation_id = $2 and record_id = $3 and stream_id = $4
"""


async def status_of(conn: Connection, turn: ClosedTurn) -> RecordStatus | None:
    """Return the status of the turn's record, or `None` if it was deleted."""
    status: RecordStatus | None = await conn.fetchval(
        _STATUS, turn.app_id, turn.conversation_id, turn.record_id, turn.stream_id
    )
    return status


_SETTLE = """
update conversation_records set status = $5, updated_at = now()
where app_id = $1 and conversation_id = $2 and record_id = $3 and stream_id = $4 and status = 'incomplete'
"""


async def close_queued(conn: Connection, turn: ClosedTurn) -> RecordStatus | None:
    """Close a turn from the retry queue.

    Its reader has already received the outcome, so the record gets that status even if another process has marked
    the turn as `incomplete` since.
    """
    written = await close_turn(conn, turn)
    status = turn.answered.status
    if status not in (written, "incomplete"):
        await conn.execute(_SETTLE, turn.app_id, turn.conversation_id, turn.record_id, turn.stream_id, status)
    return written


_INTERRUPT = """
update conversation_records
set status = 'interrupted', content = jsonb_build_array(content -> 0) || $5::jsonb, updated_at = now()
where app_id = $1 and conversation_id = $2 and record_id = $3 and stream_id = $4 and status = 'complete'
"""


async def interrupt(
    conn: Connection,
    app_id: str,
    conversation_id: str,
    record_id: int,
    *,
    stream_id: str,
    message: dict[str, Any] | None,
) -> None:
    """Replace the answer of a complete record by `message`, the part that was played, and mark it `interrupted`."""
    messages = dumps([message] if message else []).decode()
    await conn.execute(_INTERRUPT, app_id, conversation_id, record_id, stream_id, messages)
