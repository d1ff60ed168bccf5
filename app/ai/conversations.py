"""Listing and deleting the conversations of a user."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator

from actors.runtime.context import Owner
from app.ai.history import ConversationView, conversation_view
from app.http.paging import Page, PageQuery, cursor, page_of
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Path, Query
from app.http.rows.replies import Empty
from app.http.rows.transactions import Transaction
from storage.conversations import conversations
from storage.conversations.admission import Slot
from storage.conversations.conversations import OWN_CONVERSATION, Conversation
from storage.errors import TurnRunning
from storage.jobs.jobs import RemoveObjects, enqueue
from streams.wire.errors import StoreError
from streams.wire.model import Model

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CURSOR = re.compile(r"([0-9]{1,17})-([0-9a-f]{32})", re.ASCII)


class ConversationPath(Model):
    conversation_id: Annotated[str, AfterValidator(OWN_CONVERSATION.validate)]
    """A conversation of the user."""


class ListQuery(PageQuery[Annotated[str, cursor(_CURSOR.fullmatch)]]):
    pass


class ListedConversation(ConversationView):
    first_words: str
    """The beginning of the user's first message, at most 80 characters."""


class ConversationList(Page[str]):
    """A page of the user's conversations."""

    conversations: list[ListedConversation]


async def list_conversations(call: Call, query: Query[ListQuery]) -> ConversationList:
    """List the user's conversations.

    The most recently used conversation comes first.
    """
    async with call.services.database.connection() as conn:
        found = await conversations.overview(
            conn, call.app_id, call.caller.user, before=_position(query.before), size=query.size + 1
        )
    listed, further = page_of(found, query.size, lambda entry: _cursor_of(entry[0]))
    return ConversationList(
        next=further,
        conversations=[
            ListedConversation(**conversation_view(conversation).model_dump(), first_words=first_words)
            for conversation, first_words in listed
        ],
    )


def _position(text: str | None) -> tuple[datetime, str] | None:
    match = text and _CURSOR.fullmatch(text)
    if not match:
        return None
    microseconds, conversation_id = match.groups()
    return _EPOCH + timedelta(microseconds=int(microseconds)), conversation_id


def _cursor_of(conversation: Conversation) -> str:
    microseconds = (conversation.updated_at - _EPOCH) // timedelta(microseconds=1)
    return f"{microseconds}-{conversation.conversation_id}"


async def delete_conversation(call: Call, transaction: Transaction, path: Path[ConversationPath]) -> Empty:
    """Delete a conversation.

    This also deletes its records and their audio. A conversation with a running turn cannot be deleted.
    """
    conversation_id = path.conversation_id
    if await call.services.admissions.turn_is_running(call.app_id, call.caller.user, conversation_id):
        raise TurnRunning("a turn of this conversation is running")
    async with call.services.database.connection() as conn:
        running = await conversations.is_running(
            conn, call.app_id, call.caller.user, conversation_id=conversation_id
        )
    if running:  # Valkey may have lost the key of the turn.
        max_stream_s = call.app_limits.max_stream_s
        await call.services.turns.check_free(call.app_id, conversation_id, max_stream_s=max_stream_s)
    async with transaction.begin() as conn:
        deleted = await conversations.delete(conn, call.app_id, call.caller.user, conversation_id=conversation_id)
        keys = OWN_CONVERSATION.require(conversation_id, deleted)
        if keys:
            await enqueue(conn, RemoveObjects(keys=keys))
        reply = transaction.answer(Empty())
    await _forget_streams(call, conversation_id)
    with suppress(StoreError):  # The job deletes the objects later.
        await call.services.objects.delete(keys)
    return reply


async def _forget_streams(call: Call, conversation_id: str) -> None:
    """Make the conversation's finished streams in this process unreadable, including through other processes."""
    owner = Owner(call.app_id, call.caller.user)
    for stream_id in call.services.supervisor.forget(owner, conversation_id):
        slot = Slot(owner.app_id, owner.user_id, stream_id, conversation_id)
        await call.services.admissions.release(slot, readable_s=0)
