"""The endpoints of postcards: sending by an app's server; listing and deleting by users."""

from typing import Annotated

from pydantic import AfterValidator, Field

from app.http.paging import IdCursor, Page, PageQuery, page_of
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body, Path, Query
from app.http.rows.replies import Empty
from app.http.rows.transactions import Transaction
from storage import postcards
from storage.configs.kinds.postcards import POSTCARDS
from storage.postcards import POSTCARD, Postcard
from streams.wire.codec import rfc3339
from streams.wire.model import Model


class PostcardPath(Model):
    postcard_id: Annotated[str, AfterValidator(POSTCARD.validate)]
    """A postcard of the user."""


class NewPostcard(Model):
    design: str = Field(max_length=64)
    """Name of a config of kind `postcards`."""
    text: str = Field(min_length=1, max_length=500)


class PostcardView(Model):
    postcard_id: str
    text: str
    posted_time: str
    """The zero time until the postcard is posted."""


class PostcardList(Page[str]):
    postcards: list[PostcardView]


async def send(call: Call, transaction: Transaction, body: Body[NewPostcard]) -> PostcardView:
    """Send a postcard to a user."""
    call.services.configs.required(POSTCARDS, call.app_id, body.design)
    now = call.services.clock.now(call.app_id)
    async with transaction.begin() as conn:
        postcard = await postcards.add(
            conn, call.app_id, call.caller.user, design=body.design, text=body.text, now=now
        )
        return transaction.answer(_view(postcard))


async def list_postcards(call: Call, query: Query[PageQuery[IdCursor]]) -> PostcardList:
    """List the user's postcards."""
    async with call.services.database.connection() as conn:
        found = await postcards.page(conn, call.app_id, call.caller.user, before=query.before, size=query.size + 1)
    page, further = page_of(found, query.size, lambda postcard: postcard.postcard_id)
    return PostcardList(next=further, postcards=[_view(postcard) for postcard in page])


async def delete(call: Call, transaction: Transaction, path: Path[PostcardPath]) -> Empty:
    """Delete a postcard from the user's list."""
    async with transaction.begin() as conn:
        deleted = await postcards.delete(conn, call.app_id, call.caller.user, postcard_id=path.postcard_id)
        POSTCARD.require(path.postcard_id, deleted)
        return transaction.answer(Empty())


def _view(postcard: Postcard) -> PostcardView:
    return PostcardView(
        postcard_id=postcard.postcard_id, text=postcard.text, posted_time=rfc3339(postcard.posted_at)
    )
