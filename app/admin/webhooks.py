"""Admin API of stored webhooks: lists, reads and replays them."""

import base64
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from app.admin.area import FOR_EDITORS, FOR_VIEWERS
from app.admin.reasons import origin_with_reason
from app.http.paging import IdCursor, Page, SortedQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path, Query
from app.http.rows.replies import Empty
from app.http.rows.transactions import Transaction
from storage.errors import WebhookNotFound
from storage.jobs import inbox
from storage.jobs.inbox import WEBHOOK, Filter, Status, WebhookState
from streams.wire.codec import rfc3339
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model


class WebhookPath(Model):
    webhook_id: Annotated[str, AfterValidator(WEBHOOK.validate)]
    """A stored webhook."""


class WebhookQuery(SortedQuery[IdCursor]):
    app: str | None = None
    """List only webhooks of this app."""
    source: str | None = None
    """List only webhooks of this source."""
    status: Status | None = None
    """List only webhooks with this status."""


class WebhookRow(Model):
    webhook_id: str
    app: str
    source: str
    config: str
    event_id: str | None = None
    """The platform's id of the event."""
    delivery_id: str | None = None
    """The platform's id of this delivery of the event."""
    received_at: str
    status: Status
    """`received`: a job processes it or will. `done`: processing succeeded. `failed`: the last attempt failed;
    unless the job is held, further ones follow."""
    error: str | None = None
    """Why the last attempt failed."""
    worked_at: str | None = None
    """When the last attempt ended."""


class WebhookList(Page[str]):
    """A page of the stored webhooks, without their bodies."""

    webhooks: list[WebhookRow]


class WebhookReply(WebhookRow):
    """The webhook with its headers and body."""

    headers: dict[str, str]
    """The headers that are stored for this source."""
    body: str | None = None
    """The body, if it is UTF-8."""
    body_base64: str | None = Field(default=None, json_schema_extra={"contentEncoding": "base64"})
    """The body, if it is not UTF-8."""


async def get_webhook(call: Call, path: Path[WebhookPath]) -> WebhookReply:
    """Read a stored webhook.

    Its body is returned as it was received.
    """
    async with call.services.database.connection() as conn:
        webhook = WEBHOOK.require(path.webhook_id, await inbox.find(conn, path.webhook_id))
    body = encoded = None
    try:
        body = webhook.body.decode()
    except UnicodeDecodeError:
        encoded = base64.b64encode(webhook.body).decode()
    return WebhookReply(
        **webhook_row(webhook.state).model_dump(), headers=webhook.headers, body=body, body_base64=encoded
    )


async def replay_webhook(call: Call, transaction: Transaction, path: Path[WebhookPath]) -> Empty:
    """Process a stored webhook again.

    This is possible with any status. The attempts are counted from zero again. The header `X-Parley-Reason` is
    required.
    """
    origin = origin_with_reason(call)
    async with transaction.begin() as conn:
        if not await inbox.replay(conn, path.webhook_id, origin=origin):
            raise WebhookNotFound(path.webhook_id)
        return transaction.answer(Empty())


def webhook_row(state: WebhookState) -> WebhookRow:
    return WebhookRow(
        webhook_id=state.webhook_id,
        app=state.app_id,
        source=state.source,
        config=state.config,
        event_id=state.event_id,
        delivery_id=state.delivery_id,
        received_at=rfc3339(state.received_at),
        status=state.status,
        error=state.error,
        worked_at=None if state.worked_at is None else rfc3339(state.worked_at),
    )


def admin_webhook_routes(sources: Sequence[str]) -> list[Endpoint]:
    """Return the rows of the route table that manage the webhooks of `sources`."""

    async def list_webhooks(call: Call, query: Query[WebhookQuery]) -> WebhookList:
        """List stored webhooks.

        The newest comes first.
        """
        which = Filter(query.app, query.source, query.status)
        found = await call.services.reads.read(
            lambda conn: inbox.listed(
                conn, which, oldest_first=query.oldest_first, before=query.before, size=query.size + 1
            )
        )
        if not found and query.source is not None and query.source not in sources:
            raise InvalidParameter(f"source must be one of {', '.join(sources)}")
        page, further = page_of(found, query.size, lambda state: state.webhook_id)
        return WebhookList(next=further, webhooks=[webhook_row(state) for state in page])

    path, not_found = "/admin/api/webhooks", (WebhookNotFound,)
    return [
        Endpoint("GET", path, list_webhooks, FOR_VIEWERS),
        Endpoint("GET", f"{path}/{{webhook_id}}", get_webhook, FOR_EDITORS, errors=not_found),
        Endpoint("POST", f"{path}/{{webhook_id}}/replay", replay_webhook, FOR_EDITORS, errors=not_found),
    ]
