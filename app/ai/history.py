"""The history of a conversation (§2.12, 4.17)."""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from app.http.request.large_responses import reserve
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Query
from app.http.rows.replies import Json
from storage.conversations import conversations
from storage.conversations.conversations import OWN_CONVERSATION, Conversation, Record
from streams.wire.codec import dumps, encoded, rfc3339
from streams.wire.errors import InvalidParameter, ItemNotFound
from streams.wire.model import Model, QueryInt

_LAST_ID = 2**31 - 1
_RECORDS_BYTES = 1024 * 1024
_SLICE_BYTES = 32 * 1024
_BETWEEN_ITEMS = b"}, {"
_KEY = re.compile(rb'"(audio_url|viseme_url)": \{"key": "([^"\\]+)"\}')


def _any_length(value: Any) -> Any:
    """Accept any number of digits. A number greater than every possible id means the last record."""
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        digits = value.lstrip("0") or "0"
        return digits if len(digits) <= len(str(_LAST_ID)) else _LAST_ID
    return value


class RecordNotFound(ItemNotFound):
    """No record of the conversation has this `record_id`."""

    def __init__(self, record_id: int) -> None:
        super().__init__(f"record {record_id} of this conversation does not exist")


class HistoryQuery(Model):
    conversation_id: str = Field(min_length=1, max_length=64)
    newest: Annotated[QueryInt, BeforeValidator(_any_length)] = Field(default=-1, alias="from")
    """Id of the newest record to return; -1 means the last record."""
    size: QueryInt = Field(default=10, ge=1, le=100)
    record_id: QueryInt | None = None
    """Return only this record, and ignore `from` and `size`."""

    @model_validator(mode="before")
    @classmethod
    def _one_record(cls, value: Any) -> Any:
        if isinstance(value, dict) and "record_id" in value:
            return {name: given for name, given in value.items() if name not in {"from", "size"}}
        return value


class ConversationView(Model):
    conversation_id: str
    status: str
    last_record_id: int
    record_count: int
    record_token: int
    sys_created_time: str
    sys_updated_time: str


class RecordView(Model):
    record_id: int
    conversation_id: str
    content: list[dict[str, Any]]
    strategy: str
    status: str
    sys_created_time: str
    sys_updated_time: str


class HistoryData(Model):
    conversation: ConversationView
    conversation_records: list[RecordView]


class History(Model):
    """Records of the conversation, newest first."""

    asset: list[dict[str, Any]]
    data: HistoryData


async def history(call: Call, query: Query[HistoryQuery]) -> Json[History]:
    """Read a conversation.

    Records are returned newest first. A response holds at most 1 MiB of records (at least one), so possibly fewer
    than `size`. To continue, set `from` to the last `record_id` minus 1.
    """
    if query.newest == 0 or query.newest < -1:
        raise InvalidParameter("from must be -1 or at least 1")
    newest, size = (query.newest, query.size) if query.record_id is None else (query.record_id, 1)
    conversation = await _conversation(call, query.conversation_id)
    last = conversation.last_record_id if newest == -1 else min(newest, _LAST_ID)
    async with call.services.database.connection() as conn:
        records = await conversations.page(
            conn,
            call.app_id,
            conversation_id=query.conversation_id,
            newest=last,
            size=size,
            max_bytes=_RECORDS_BYTES,
        )
    if query.record_id is not None and [record.record_id for record in records] != [query.record_id]:
        raise RecordNotFound(query.record_id)
    reserve(call.request, sum(len(record.content) for record in records))
    data = {
        "conversation": conversation_view(conversation).model_dump(),
        "conversation_records": await _records(call, query.conversation_id, records),
    }
    return Json({"asset": [], "data": data})


async def _conversation(call: Call, conversation_id: str) -> Conversation:
    """Return the caller's conversation.

    If its running turn belongs to a dead process, that turn is ended, unless another process may continue it.
    """
    services, known_id = call.services, OWN_CONVERSATION.validate(conversation_id)
    async with services.database.connection() as conn:
        found = await conversations.find(conn, call.app_id, call.caller.user, conversation_id=known_id)
    conversation = OWN_CONVERSATION.require(conversation_id, found)
    if conversation.running and await services.turns.dead_turns.end(call.app_id, known_id, gives_up=False):
        async with services.database.connection() as conn:
            found = await conversations.find(conn, call.app_id, call.caller.user, conversation_id=known_id)
    return OWN_CONVERSATION.require(conversation_id, found)


def conversation_view(conversation: Conversation) -> ConversationView:
    return ConversationView(
        conversation_id=conversation.conversation_id,
        status="running" if conversation.running else "normal",
        last_record_id=conversation.last_record_id,
        record_count=conversation.record_count,
        record_token=conversation.record_token,
        sys_created_time=rfc3339(conversation.created_at),
        sys_updated_time=rfc3339(conversation.updated_at),
    )


async def _records(call: Call, conversation_id: str, records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the records with the fields of `RecordView`, ready to be encoded."""
    joined = b"\n".join([record.content for record in records])  # JSON has no line break within a string
    # Without records, `linked` is one empty item, which `zip` ignores.
    linked = (await _with_links(joined, call.services.objects.url)).split(b"\n")
    return [
        {
            "record_id": record.record_id,
            "conversation_id": conversation_id,
            "content": encoded(content),
            "strategy": record.strategy,
            "status": record.status,
            "sys_created_time": rfc3339(record.created_at),
            "sys_updated_time": rfc3339(record.updated_at),
        }
        for record, content in zip(records, linked, strict=False)
    ]


async def _with_links(content: bytes, url: Callable[[str], str]) -> bytes:
    """Replace object keys in `content`, which is encoded JSON, by links, without blocking the event loop for long.

    The bytes are searched instead of decoded. Quotes within strings are escaped, so the pattern matches only names
    of fields. `content` is split where an item ends. Text that only looks like such an end does no harm, because
    the pattern matches nothing within a string.
    """

    def link(found: re.Match[bytes]) -> bytes:
        name, key = found.groups()
        return b'"%b": {"url": %b}' % (name, dumps(url(key.decode())))

    pieces, start = [], 0
    while (end := content.find(_BETWEEN_ITEMS, start + _SLICE_BYTES)) >= 0:
        pieces.append(_KEY.sub(link, content[start:end]))
        start = end
        await asyncio.sleep(0)
    return b"".join([*pieces, _KEY.sub(link, content[start:])])
