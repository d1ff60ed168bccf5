"""Admin API of users: lists an app's users, and searches for users by an id or an address."""

import re

from pydantic import Field

from app.admin.apps import require_app
from app.admin.area import FOR_EDITORS
from app.admin.users.users import BanView, ban_view
from app.http.paging import IdCursor, Page, SortedQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Query
from storage.accounts import user_search
from storage.accounts.user_search import FoundBy, FoundUser, ListedStatus
from storage.accounts.users import Status
from storage.errors import UnknownApp
from streams.wire.codec import rfc3339
from streams.wire.model import Model
from streams.wire.typed import typed_phone_number

_NUMBER = re.compile(r"\+[0-9]+")
"""A phone number, or its beginning. No other id begins with a plus."""
_BETWEEN_DIGITS = dict.fromkeys(map(ord, "()./"))


class UserQuery(SortedQuery[IdCursor]):
    app: str | None = None
    """List only users of this app. Without `text`, the default is `default`."""
    text: str | None = Field(default=None, max_length=320)
    """Search for this: the whole id of a user, or of a payment, a subscription, a withdrawal, a stream, a
    conversation, a prediction, an image task or an email of a user; or the beginning of an id at a
    platform, such as an address. The reply has at most `size` users and no further page."""
    status: ListedStatus | None = None
    """List only users with this status, or who are `banned`. Neither this nor `sort` is used with `text`."""


class UserRow(Model):
    app: str
    user_id: str
    status: Status
    name: str
    ban: BanView | None = None
    """The ban that holds."""
    created_at: str
    last_login_at: str
    identities: list[str]
    """The ids at platforms, as `platform: id`. Ids that are secrets of a client are left out."""
    found_by: FoundBy | None = None
    """What `text` names. Absent without `text`."""


class UserList(Page[str]):
    """A page of the users."""

    users: list[UserRow]


async def list_users(call: Call, query: Query[UserQuery]) -> UserList:
    """List the users of an app, or those found by a search of all apps."""
    configs = call.services.configs
    if query.app is not None:
        require_app(call, query.app)
    text = _as_stored((query.text or "").strip())
    if text:
        apps = configs.apps() if query.app is None else [query.app]
        found = await call.services.reads.read(
            lambda conn: user_search.search(conn, apps, text=text, size=query.size)
        )
        return UserList(users=[_row(call, user) for user in found])
    found = await call.services.reads.read(
        lambda conn: user_search.page(
            conn,
            query.app or "default",
            status=query.status,
            oldest_first=query.oldest_first,
            now=call.services.clock.now(query.app or "default"),
            before=query.before,
            size=query.size + 1,
        )
    )
    page, further = page_of(found, query.size, lambda user: user.uid)
    return UserList(next=further, users=[_row(call, user) for user in page])


def _as_stored(text: str) -> str:
    """Return a phone number without what people write between its digits, and any other text as it is."""
    number = typed_phone_number(text).replace("(0)", "").translate(_BETWEEN_DIGITS)
    return number if _NUMBER.fullmatch(number) else text


def _row(call: Call, found: FoundUser) -> UserRow:
    return UserRow(
        app=found.app_id,
        user_id=found.uid,
        status=found.status,
        name=found.name,
        ban=ban_view(found.ban(now=call.services.clock.now(found.app_id))),
        created_at=rfc3339(found.create_time),
        last_login_at=rfc3339(found.last_login),
        identities=found.identities,
        found_by=found.found_by,
    )


USER_SEARCH_ROUTES = [Endpoint("GET", "/admin/api/users", list_users, FOR_EDITORS, errors=(UnknownApp,))]
