"""Admin API: streams that have ended, by their stored attempts at vendors."""

from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import Field

from app.admin.apps import currency_of, require_app
from app.admin.area import FOR_VIEWERS
from app.admin.streams.live import Kind
from app.http.paging import IdCursor, Page, PageQuery
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Query
from storage.conversations import ended_streams
from storage.conversations.ended_streams import EndedStream, Filter, Outcome
from storage.errors import UnknownApp
from streams.wire.codec import rfc3339
from streams.wire.model import Model, QueryInt

_MAX_HOURS = 24 * 366


class EndedQuery(PageQuery[IdCursor]):
    app: str = "default"
    user_id: str | None = None
    outcome: Outcome | None = None
    kind: Kind | None = None
    hours: QueryInt | None = Field(default=None, ge=1, le=_MAX_HOURS)
    """List only streams that began within the last hours."""


class EndedRow(Model):
    stream_id: str
    app: str
    user_id: str
    kind: Kind
    """A conversation whose input was not recognized counts as one, too."""
    outcome: Literal["answered", "failed", "canceled"]
    """`answered`: a vendor has answered to the end. `failed`: none has, and at least one has failed. `canceled`:
    the stream ended before that."""
    strategy: str
    """The strategy that has answered, or was tried last."""
    vendor: str
    model: str | None = None
    attempts: int
    failed: int
    """How many of the attempts have failed."""
    elapsed_ms: int
    """The time of the longest attempt."""
    price: str
    currency: str
    stored_at: str
    """When its attempts were stored: at its end."""


class EndedList(Page[str]):
    """A page of the streams that have ended."""

    streams: list[EndedRow]
    """A page may have fewer streams than `size`, or none, if few match. `next` continues the search."""


async def list_ended(call: Call, query: Query[EndedQuery]) -> EndedList:
    """List the streams of an app that have ended, with their cost.

    The newest comes first. A request looks at a limited number of streams, so a page of a rare kind may be short.
    """
    require_app(call, query.app)
    since = None if query.hours is None else datetime.now(UTC) - timedelta(hours=query.hours)
    which = Filter(query.user_id, query.outcome, query.kind)
    page = await call.services.reads.read(
        lambda conn: ended_streams.page(
            conn, query.app, which=which, since=since, before=query.before, size=query.size
        )
    )
    currency = currency_of(call.services.configs, query.app)
    return EndedList(next=page.next, streams=[_row(query.app, currency, stream) for stream in page.streams])


def _row(app: str, currency: str, stream: EndedStream) -> EndedRow:
    return EndedRow(
        stream_id=stream.stream_id,
        app=app,
        user_id=stream.uid,
        kind=stream.kind,
        outcome=stream.outcome,
        strategy=stream.strategy,
        vendor=stream.vendor,
        model=stream.model,
        attempts=stream.attempts,
        failed=stream.failed,
        elapsed_ms=stream.elapsed_ms,
        price=stream.price,
        currency=currency,
        stored_at=rfc3339(stream.stored_at),
    )


ENDED_ROUTES = [Endpoint("GET", "/admin/api/ended_streams", list_ended, FOR_VIEWERS, errors=(UnknownApp,))]
