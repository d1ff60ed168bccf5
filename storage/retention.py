"""Deletion of conversations that are no longer kept."""

from datetime import datetime

from storage.jobs import RemoveObjects, enqueue
from storage.postgres import Connection

_DELETE_EXPIRED = """
with expired as (
    select app_id, conversation_id from conversations
    where app_id = $1 and updated_at < $2
    and not exists (
        select from conversation_records record
        where record.app_id = conversations.app_id and record.conversation_id = conversations.conversation_id
        and record.status = 'running')
    order by updated_at limit $3
    for update skip locked
), keys as (
    select key #>> '{}' as key
    from expired join conversation_records using (app_id, conversation_id),
        jsonb_path_query(content, '$[*].content[*].*.key') as key
), deleted as (
    delete from conversations using expired
    where conversations.app_id = expired.app_id and conversations.conversation_id = expired.conversation_id
    returning 1
)
select (select count(*) from deleted) as count, array(select key from keys) as keys
"""


async def delete_expired(conn: Connection, app_id: str, *, before: datetime, limit: int) -> int:
    """Delete at most `limit` conversations that were last used before the given time. Return their number."""
    row = await conn.fetchrow(_DELETE_EXPIRED, app_id, before, limit)
    if keys := row["keys"]:
        await enqueue(conn, RemoveObjects(keys=keys))
    count: int = row["count"]
    return count
