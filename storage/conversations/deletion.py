"""Deletion of conversations by age, or because their user is deactivated, and of the audio of their records."""

from datetime import datetime

from storage.jobs.jobs import RemoveObjects, enqueue
from storage.postgres.connection import one
from storage.postgres.database import Connection

_DELETE = """
with expired as (
    select app_id, conversation_id from conversations
    where app_id = $1 and {which}
    and not exists (
        select from conversation_records record
        where record.app_id = conversations.app_id and record.conversation_id = conversations.conversation_id
        and record.status = 'running'{running})
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
_DELETE_EXPIRED = _DELETE.replace("{which}", "updated_at < $2").replace("{running}", "")
_DELETE_OF_USER = _DELETE.replace("{which}", "uid = $2").replace("{running}", " and record.created_at > $4")


async def delete_expired(conn: Connection, app_id: str, *, before: datetime, limit: int) -> int:
    """Delete at most `limit` conversations that were last used before the given time. Return their number."""
    return await _delete(conn, _DELETE_EXPIRED, app_id, before, limit)


async def delete_of_user(conn: Connection, app_id: str, uid: str, *, running_since: datetime, limit: int) -> int:
    """Delete at most `limit` conversations of a user. Return their number.

    Those with a turn that has been running since `running_since` or later are left out. No turn lasts longer.
    """
    return await _delete(conn, _DELETE_OF_USER, app_id, uid, limit, running_since)


async def _delete(conn: Connection, statement: str, *arguments: object) -> int:
    row = one(await conn.fetchrow(statement, *arguments))
    if keys := row["keys"]:
        await enqueue(conn, RemoveObjects(keys=keys))
    count: int = row["count"]
    return count


async def has_conversations(conn: Connection, app_id: str, uid: str) -> bool:
    """Return whether a user has conversations."""
    found: bool = await conn.fetchval(
        "select exists (select from conversations where app_id = $1 and uid = $2)", app_id, uid
    )
    return found
