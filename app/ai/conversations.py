"""Listing and deleting the conversations of a user."""

from contextlib import suppress

from aiohttp import web
from pydantic import Field

from actors.context import Owner
from app.ai.history import ConversationView, conversation_view
from app.ai.opening import longest_stream_s
from app.http.endpoint import Call, json_response
from storage import conversations
from storage.admission import Slot
from storage.jobs import RemoveObjects, enqueue
from streams.wire.errors import InvalidOperation, ItemNotFound, StoreError
from streams.wire.ids import is_id
from streams.wire.model import Model, QueryInt


class ListQuery(Model):
    skip: QueryInt = Field(default=0, alias="from", ge=0, le=1_000_000)
    """Number of newest conversations to skip."""
    size: QueryInt = Field(default=10, ge=1, le=100)


class ListedConversation(ConversationView):
    first_words: str
    """The beginning of the user's first message, at most 80 characters."""


class ConversationList(Model):
    conversations: list[ListedConversation]


async def list_conversations(call: Call, query: ListQuery) -> ConversationList:
    """List the user's conversations.

    The most recently used conversation comes first.
    """
    async with call.services.database.connection() as conn:
        listed = await conversations.overview(conn, call.app_id, call.caller.user, skip=query.skip, size=query.size)
    return ConversationList(
        conversations=[
            ListedConversation(**conversation_view(conversation).model_dump(), first_words=first_words)
            for conversation, first_words in listed
        ]
    )


async def delete_conversation(call: Call) -> web.Response:
    """Delete a conversation.

    This also deletes its records and their audio. A conversation with a running turn cannot be deleted.
    """
    conversation_id = call.path["conversation_id"]
    if is_id(conversation_id):
        if await call.services.admissions.turn_is_taken(call.app_id, call.caller.user, conversation_id):
            raise InvalidOperation("a turn of this conversation is running")
        async with call.services.database.connection() as conn:
            running = await conversations.is_running(conn, call.app_id, call.caller.user, conversation_id)
        if running:  # Valkey may have lost the key of the turn.
            longest_s = longest_stream_s(call.app_limits)
            await call.services.turns.check_free(call.app_id, conversation_id, longest_s=longest_s)
        async with call.services.database.transaction() as conn:
            keys = await conversations.delete(conn, call.app_id, call.caller.user, conversation_id)
            if keys:
                await enqueue(conn, RemoveObjects(keys=keys))
        if keys is not None:
            await _forget_streams(call, conversation_id)
            with suppress(StoreError):  # then the job deletes them
                await call.services.objects.delete(keys)
            return json_response({})
    raise ItemNotFound("conversation_id names no conversation of this user")


async def _forget_streams(call: Call, conversation_id: str) -> None:
    """Make the conversation's finished streams in this process unreadable, also through other processes."""
    owner = Owner(call.app_id, call.caller.user)
    for stream_id in call.services.supervisor.forget(owner, conversation_id):
        slot = Slot(owner.app_id, owner.user_id, stream_id, conversation_id)
        await call.services.admissions.give_back(slot, readable_s=0)
