"""Admin API of conversations: the texts of one, and the attempts at vendors of one stream."""

from typing import Any

from app.admin.apps import require_app
from app.admin.area import FOR_ADMINS, FOR_VIEWERS
from app.http.paging import Page, PageQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path, Query
from storage.conversations import attempts, conversations
from storage.errors import ConversationNotFound, UnknownApp
from streams.wire.codec import loads, rfc3339
from streams.wire.errors import ItemNotFound, listed
from streams.wire.model import Model, QueryInt

_NEWEST = 2**31 - 1
_MAX_BYTES = 1 << 20


class StreamNotFound(ItemNotFound):
    """No attempts at vendors of this stream are stored."""

    def __init__(self, stream_id: str) -> None:
        super().__init__(f"stream {listed([stream_id])} has no attempts")


class ConversationPath(Model):
    app: str
    """An app of this server."""
    conversation_id: str
    """A conversation of any user of the app."""


class StreamPath(Model):
    app: str
    """An app of this server."""
    stream_id: str
    """A stream that has ended."""


class TurnRow(Model):
    record_id: int
    status: str
    strategy: str
    messages: list[Any]
    """The texts of the turn, as the user reads them. Files have a `key`."""
    created_at: str
    updated_at: str


class TurnList(Page[int]):
    """A page of the turns of the conversation."""

    records: list[TurnRow]


class AttemptList(Model):
    """The attempts of the stream."""

    user_id: str
    began_at: str
    attempts: list[dict[str, Any]]
    """In the order in which they began: `stage`, `strategy`, `vendor`, `model`, `outcome`, `message`, `started_ms`
    (after the arrival of the request), `first_output_ms`, `elapsed_ms`, the units of usage, and `price` in the
    app's currency."""


async def read_texts(call: Call, path: Path[ConversationPath], query: Query[PageQuery[QueryInt]]) -> TurnList:
    """Read the texts of a conversation.

    The newest turn comes first. Texts are private, so this needs the role `admin`.
    """
    require_app(call, path.app)
    async with call.services.database.connection() as conn:
        newest = _NEWEST if query.before is None else max(0, query.before - 1)
        found = await conversations.page(
            conn,
            path.app,
            conversation_id=path.conversation_id,
            newest=min(newest, _NEWEST),
            size=query.size + 1,
            max_bytes=_MAX_BYTES,
        )
    if not found and query.before is None:
        raise ConversationNotFound(path.conversation_id)
    page, further = page_of(found, query.size, lambda record: record.record_id)
    return TurnList(next=further, records=[_row(record) for record in page])


async def read_attempts(call: Call, path: Path[StreamPath]) -> AttemptList:
    """Read the attempts at vendors of a stream.

    Each has its usage and its price.
    """
    require_app(call, path.app)
    async with call.services.database.connection() as conn:
        found = await attempts.of_stream(conn, path.app, stream_id=path.stream_id)
    if found is None:
        raise StreamNotFound(path.stream_id)
    return AttemptList(user_id=found.uid, began_at=rfc3339(found.began_at), attempts=found.attempts)


def _row(record: conversations.Record) -> TurnRow:
    return TurnRow(
        record_id=record.record_id,
        status=record.status,
        strategy=record.strategy,
        messages=loads(record.content),
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
    )


CONVERSATION_ROUTES = [
    Endpoint(
        "GET",
        "/admin/api/conversations/{app}/{conversation_id}",
        read_texts,
        FOR_ADMINS,
        errors=(UnknownApp, ConversationNotFound),
    ),
    Endpoint(
        "GET",
        "/admin/api/streams/{app}/{stream_id}/attempts",
        read_attempts,
        FOR_VIEWERS,
        errors=(UnknownApp, StreamNotFound),
    ),
]
