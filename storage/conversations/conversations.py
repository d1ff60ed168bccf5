"""Conversations and their records (§2.12). Rows store object keys instead of links, because links expire."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from storage.errors import ConversationNotFound
from storage.postgres.database import Connection
from streams.wire.owned import Owned

OWN_CONVERSATION = Owned(ConversationNotFound)
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


_STATE = """
select exists (select from conversation_records where app_id = $1 and conversation_id = $2 and status = 'running')
from conversations where app_id = $1 and conversation_id = $2 and uid = $3
"""


async def is_running(conn: Connection, app_id: str, uid: str, *, conversation_id: str) -> bool | None:
    """Return whether a turn of the conversation is running; `None` if the user has no such conversation."""
    running: bool | None = await conn.fetchval(_STATE, app_id, conversation_id, uid)
    return running


_FIND = """
select conversation_id, last_record_id, record_count, record_token, created_at, updated_at,
       exists (select from conversation_records r where r.app_id = c.app_id
               and r.conversation_id = c.conversation_id and r.status = 'running') as running
from conversations c where app_id = $1 and conversation_id = $2 and uid = $3
"""


async def find(conn: Connection, app_id: str, uid: str, *, conversation_id: str) -> Conversation | None:
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
with deleted as (
    delete from conversations where app_id = $1 and conversation_id = $2 and uid = $3 returning true
)
select array(
    select key #>> '{}' from conversation_records,
        jsonb_path_query(content, '$[*].content[*].*.key') as key
    where app_id = $1 and conversation_id = $2
) from deleted
"""


async def delete(conn: Connection, app_id: str, uid: str, *, conversation_id: str) -> list[str] | None:
    """Delete a conversation with its records. Return the keys of its objects, or `None` if it does not exist."""
    keys: list[str] | None = await conn.fetchval(_DELETE, app_id, conversation_id, uid)
    return keys


# Records are read one at a time, because the size of a compressed value is known only once it is read. Thus the
# records after the last one of the page are not read at all.
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
    conn: Connection, app_id: str, *, conversation_id: str, newest: int, size: int, max_bytes: int
) -> list[Record]:
    """Return at most `size` records, newest first, starting at record id `newest`.

    They have at most `max_bytes` of content together, but one is returned whatever its size.
    """
    rows = await conn.fetch(_PAGE, app_id, conversation_id, newest, size, max_bytes)
    return [Record(**row) for row in rows]
