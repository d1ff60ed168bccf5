"""Turns of conversations: a record is opened with the user's message, and closed with the answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, Self

from storage.clock import app_now
from storage.conversations.attempts import AttemptRow, insert_statement
from storage.conversations.conversations import RecordStatus
from storage.errors import ConversationNotFound, TurnRunning
from storage.postgres.database import Connection, on_conflict


@dataclass(frozen=True, slots=True)
class TurnOutcome:
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
    content: list[dict[str, Any]]
    """The messages."""
    stream_id: str
    max_stream_s: float
    """Maximum duration of a stream. A record that has been `running` for longer is taken over."""
    process: str
    clock_offset_s: float = 0
    """The offset of the app's clock."""


@dataclass(frozen=True, slots=True)
class ClosedTurn:
    """A turn to be closed: everything that is written at its end, either immediately or from the retry queue."""

    app_id: str
    uid: str
    conversation_id: str
    record_id: int
    stream_id: str
    answered: TurnOutcome
    attempts: list[AttemptRow]
    clock_offset_s: float = 0
    """The offset of the app's clock when the turn ended."""
    process: str = ""
    """The process that closes the turn. A turn that another process has taken over is not closed."""

    @classmethod
    def of(cls, value: dict[str, Any]) -> Self:
        """Return the instance for which `asdict` returned `value`."""
        return cls(**{**value, "answered": TurnOutcome(**value["answered"])})


_ONE_RUNNING = "conversation_records_running"
_OPEN = f"""
with turn as (
    insert into conversations (app_id, conversation_id, uid, last_record_id, record_count, created_at, updated_at)
    values ($1, $2, $3, 1, 1, {app_now("$8")}, {app_now("$8")})
    on conflict (app_id, conversation_id) do update
    set last_record_id = conversations.last_record_id + 1, record_count = conversations.record_count + 1,
        updated_at = excluded.updated_at
    where conversations.uid = excluded.uid
    returning last_record_id, updated_at
), left_running as (
    update conversation_records set status = 'incomplete', updated_at = {app_now("$8")}
    where app_id = $1 and conversation_id = $2 and status = 'running'
    and created_at <= {app_now("$8")} - make_interval(secs => $6) returning 1
)
insert into conversation_records
    (app_id, conversation_id, record_id, status, content, stream_id, process, created_at, updated_at)
select $1, $2, turn.last_record_id, 'running', $4, $5, $7, turn.updated_at, turn.updated_at
from turn, (select count(*) from left_running) as cleared  -- read first, so that its index entry is removed
returning stream_id, record_id
"""


async def open_turns(conn: Connection, turns: Sequence[NewTurn]) -> dict[str, int]:
    """Store the user's message of each turn as the next record, with status `running`, in one transaction.

    Creates conversations that do not exist. Returns the record ids by stream id, without those turns whose
    conversation belongs to another user. A record that has been `running` for longer than a stream can last
    becomes `incomplete`; a younger one raises `UniqueViolationError`, which outside of the connection is a
    `DuplicateRow`. Rows are locked in the order of conversations, so that concurrent calls cannot deadlock.
    """
    rows = await conn.fetchmany(_OPEN, sorted(turns, key=itemgetter(0, 1)))
    return {row["stream_id"]: row["record_id"] for row in rows}


async def open_turn(conn: Connection, turn: NewTurn) -> int:
    """Open one turn and return its record id.

    Raises `TurnRunning` and, if the conversation belongs to another user, `ConversationNotFound`.
    """
    with on_conflict(_ONE_RUNNING, TurnRunning):
        opened = await open_turns(conn, [turn])
    if not opened:
        raise ConversationNotFound(turn.conversation_id)
    return opened[turn.stream_id]


_END = f"""
update conversation_records set status = 'incomplete', updated_at = {app_now("$4")}
where app_id = $1 and conversation_id = $2 and stream_id = $3 and status = 'running'
"""


async def end_turns(conn: Connection, turns: Sequence[NewTurn]) -> None:
    """Mark those of `turns` that are still running as `incomplete`."""
    values = ((turn.app_id, turn.conversation_id, turn.stream_id, turn.clock_offset_s) for turn in turns)
    await conn.executemany(_END, sorted(values))


_RUNS = f"""
select exists (select from conversation_records where app_id = $1 and conversation_id = $2 and status = 'running'
               and created_at > {app_now("$4")} - make_interval(secs => $3))
"""


async def turn_runs(
    conn: Connection, app_id: str, *, conversation_id: str, max_stream_s: float, clock_offset_s: float
) -> bool:
    """Return whether the conversation has a `running` record that is younger than `max_stream_s`."""
    runs: bool = await conn.fetchval(_RUNS, app_id, conversation_id, max_stream_s, clock_offset_s)
    return runs


_CLOSE = f"""
with asked as ({insert_statement("$1", "$4", "$11", "$12", offset_s="$13")}), closed as (
    update conversation_records
    set status = case status when 'running' then $5 else status end, strategy = $6, content = content || $7::jsonb,
        input_token = $8, output_token = $9, tokens_estimated = $10, updated_at = {app_now("$13")}
    where app_id = $1 and conversation_id = $2 and record_id = $3 and stream_id = $4
    and (status = 'running' or status = 'incomplete' and strategy = '') and ($14 = '' or process = $14)
    returning status, input_token + output_token as tokens
)
update conversations set record_token = record_token + closed.tokens, updated_at = {app_now("$13")}
from closed where app_id = $1 and conversation_id = $2 returning $4, closed.status
"""


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
            [turn.answered.message] if turn.answered.message else [],
            turn.answered.input_token,
            turn.answered.output_token,
            turn.answered.tokens_estimated,
            turn.uid,
            turn.attempts,
            turn.clock_offset_s,
            turn.process,
        )
        for turn in turns
    ]
    values.sort(key=itemgetter(0, 1))
    return {row[0]: row[1] for row in await conn.fetchmany(_CLOSE, values)}


async def close_turn(conn: Connection, turn: ClosedTurn) -> RecordStatus | None:
    """Close one turn. Return the new status of its record, or `None` if `close_turns` would omit it."""
    return (await close_turns(conn, [turn])).get(turn.stream_id)


_STATUS = """
select case when $5 = '' or process = $5 then status else 'running' end from conversation_records
where app_id = $1 and conversation_id = $2 and record_id = $3 and stream_id = $4
"""


async def status_of(conn: Connection, turn: ClosedTurn) -> RecordStatus | None:
    """Return the status of the turn's record, or `None` if it was deleted.

    It is `running` for this process if another one has taken over the turn, even if that has closed it since.
    """
    status: RecordStatus | None = await conn.fetchval(
        _STATUS, turn.app_id, turn.conversation_id, turn.record_id, turn.stream_id, turn.process
    )
    return status


_SETTLE = f"""
update conversation_records set status = $5, updated_at = {app_now("$6")}
where app_id = $1 and conversation_id = $2 and record_id = $3 and stream_id = $4 and status = 'incomplete'
and ($7 = '' or process = $7)
"""


async def close_queued(conn: Connection, turn: ClosedTurn) -> RecordStatus | None:
    """Close a turn from the retry queue.

    Its reader has already received the outcome, so the record gets that status even if another process has marked
    the turn as `incomplete` since.
    """
    written = await close_turn(conn, turn)
    status = turn.answered.status
    if status not in (written, "incomplete"):
        key = (turn.app_id, turn.conversation_id, turn.record_id, turn.stream_id)
        await conn.execute(_SETTLE, *key, status, turn.clock_offset_s, turn.process)
    return written


_TAKE_OVER = f"""
update conversation_records set process = $6, updated_at = {app_now("$7")}
where app_id = $1 and conversation_id = $2 and record_id = $3 and stream_id = $4 and process = any($5)
and (status = 'running' or $8 and status = 'complete') returning true
"""


async def take_over(
    conn: Connection,
    app_id: str,
    *,
    conversation_id: str,
    record_id: int,
    stream_id: str,
    dead: Sequence[str],
    process: str,
    finished: bool,
    clock_offset_s: float,
) -> bool:
    """Make `process` the one that closes a running turn of a process of `dead`. Return `False` if it has none.

    `finished`: the answer is complete, so that the process may have died after it had closed the turn.
    """
    taken: bool | None = await conn.fetchval(
        _TAKE_OVER, app_id, conversation_id, record_id, stream_id, dead, process, clock_offset_s, finished
    )
    return bool(taken)


_INTERRUPT = f"""
update conversation_records
set status = 'interrupted', content = jsonb_build_array(content -> 0) || $5::jsonb, updated_at = {app_now("$6")}
where app_id = $1 and conversation_id = $2 and record_id = $3 and stream_id = $4 and status = 'complete'
"""


async def interrupt(
    conn: Connection,
    app_id: str,
    *,
    conversation_id: str,
    record_id: int,
    stream_id: str,
    message: dict[str, Any] | None,
    clock_offset_s: float,
) -> None:
    """Replace the answer of a complete record by `message`, the part that was played, and mark it `interrupted`."""
    messages = [message] if message else []
    await conn.execute(_INTERRUPT, app_id, conversation_id, record_id, stream_id, messages, clock_offset_s)
