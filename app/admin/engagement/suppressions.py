"""Admin API of suppressions: addresses to which an app's strategies send no emails."""

from typing import Annotated

from pydantic import AfterValidator, Field

from app.admin.apps import require_app
from app.admin.area import FOR_EDITORS
from app.admin.reasons import origin_with_reason
from app.http.paging import Page, PageQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body, Path, Query
from app.http.rows.replies import Empty
from app.http.rows.transactions import Transaction
from storage.errors import UnknownApp
from storage.mail import suppressions
from storage.mail.addresses import MAX_CHARACTERS, normalized
from storage.mail.recipients import recipient_of
from storage.mail.suppressions import Position, Reason, Suppression
from streams.wire.codec import rfc3339
from streams.wire.errors import ItemNotFound, listed
from streams.wire.model import Model
from streams.wire.typed import plus_for_blank


class SuppressionNotFound(ItemNotFound):
    """The address is not on the list for this strategy."""

    def __init__(self, address: str) -> None:
        super().__init__(f"there is no such suppression of {listed([address])}")


def _position(text: str) -> str:
    if " " not in text:
        raise ValueError("must be `next` of a page of this list")
    return text


def _address(text: str) -> str:
    # The list may contain addresses of a development server, whose domains may be unknown elsewhere.
    found = normalized(text, development=True)
    if found is None:
        raise ValueError("must be an email address")
    return found


class SuppressionQuery(PageQuery[Annotated[str, AfterValidator(_position)]]):
    app: str = "default"
    address: str | None = None
    """List only entries of this address."""


class SuppressionRow(Model):
    address: str
    strategy: str
    """Empty: all strategies."""
    reason: Reason
    """`unsubscribed` by the recipient, or added by an `operator`."""
    created_at: str


class SuppressionList(Page[str]):
    """A page of the addresses."""

    suppressions: list[SuppressionRow]


class SuppressionPath(Model):
    app: str
    """The app that sends the emails."""
    address: Annotated[str, Field(max_length=MAX_CHARACTERS), AfterValidator(_address)]
    """An email address."""


class StrategyBody(Model):
    strategy: str = Field(default="", max_length=128)
    """Name of a config of kind `mail`. Empty: all strategies."""


class StrategyQuery(Model):
    strategy: str = ""
    """Name of a config of kind `mail`. Empty: the entry for all strategies."""


async def list_suppressions(call: Call, query: Query[SuppressionQuery]) -> SuppressionList:
    """List the addresses that get no emails of strategies.

    They are in alphabetical order.
    """
    require_app(call, query.app)
    after = None if query.before is None else Position(*query.before.split(" ", 1))
    sent = None if query.address is None else plus_for_blank(query.address)
    address = None if sent is None else normalized(sent, development=True) or sent
    found = await call.services.reads.read(
        lambda conn: suppressions.listed(conn, query.app, address=address, after=after, size=query.size + 1)
    )
    page, further = page_of(found, query.size, lambda entry: f"{entry.address} {entry.strategy}")
    return SuppressionList(next=further, suppressions=[_row(entry) for entry in page])


async def add_suppression(
    call: Call, transaction: Transaction, path: Path[SuppressionPath], body: Body[StrategyBody]
) -> Empty:
    """Send no emails of one strategy, or of all, to an address.

    The header `X-Parley-Reason` is required.
    """
    origin = origin_with_reason(call)
    require_app(call, path.app)
    async with transaction.begin() as conn:
        await suppressions.add(
            conn,
            path.app,
            address=path.address,
            strategy=body.strategy,
            subject=_subject(call, path),
            now=call.services.clock.now(path.app),
            origin=origin,
        )
        return transaction.answer(Empty())


async def remove_suppression(
    call: Call, transaction: Transaction, path: Path[SuppressionPath], query: Query[StrategyQuery]
) -> Empty:
    """Send emails to an address again.

    The header `X-Parley-Reason` is required.
    """
    origin = origin_with_reason(call)
    require_app(call, path.app)
    async with transaction.begin() as conn:
        removed = await suppressions.remove(
            conn,
            path.app,
            address=path.address,
            strategy=query.strategy,
            subject=_subject(call, path),
            origin=origin,
        )
        if not removed:
            raise SuppressionNotFound(path.address)
        return transaction.answer(Empty())


def _subject(call: Call, path: SuppressionPath) -> str:
    """Return the subject of an address in the audit log. Entries there outlive the address, so it is hashed."""
    return recipient_of(path.address, path.app, keyring=call.services.keyring)


def _row(entry: Suppression) -> SuppressionRow:
    return SuppressionRow(
        address=entry.address,
        strategy=entry.strategy,
        reason=entry.reason,
        created_at=rfc3339(entry.created_at),
    )


_PATH = "/admin/api/suppressions/{app}/{address}"

SUPPRESSION_ROUTES = [
    Endpoint("GET", "/admin/api/suppressions", list_suppressions, FOR_EDITORS, errors=(UnknownApp,)),
    Endpoint("PUT", _PATH, add_suppression, FOR_EDITORS, errors=(UnknownApp,)),
    Endpoint("DELETE", _PATH, remove_suppression, FOR_EDITORS, errors=(UnknownApp, SuppressionNotFound)),
]
