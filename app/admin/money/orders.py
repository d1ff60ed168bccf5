"""Admin API of payments and subscriptions: the lists of all platforms."""

from typing import Literal

from pydantic import Field

from app.admin.area import FOR_VIEWERS
from app.http.paging import IdCursor, Page, SortedQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Query
from storage.payments import order_list
from storage.payments.order_list import ListedOrder, What
from streams.wire.codec import rfc3339
from streams.wire.model import Model


class OrderQuery(SortedQuery[IdCursor]):
    app: str | None = None
    """List only those of this app."""
    platform: Literal["cardpay", "walletpay"] | None = None
    """List only those of this platform."""
    status: str | None = Field(default=None, max_length=64)
    """List only those with this status, as the platform names it."""


class OrderRow(Model):
    row_id: str
    """The id of this server."""
    app: str
    user_id: str
    platform: str
    """`cardpay` or `walletpay`."""
    config: str
    platform_id: str | None = None
    """The platform's id, once it is known."""
    status: str
    """As the platform names it; `NEW` or `new` until it has responded."""
    product: str | None = None
    """The product on this server. Absent: the payment grants nothing."""
    amount: int | None = None
    """In minor units of the currency. Absent for subscriptions."""
    currency: str | None = None
    created_at: str
    ends_at: str | None = None
    """The end of the last period of a subscription with a card."""


class OrderList(Page[str]):
    """A page of the payments or subscriptions."""

    orders: list[OrderRow]


async def list_orders(call: Call, query: Query[OrderQuery]) -> OrderList:
    """List payments for products, by card and by wallet."""
    return await _page(call, query, "orders")


async def list_subscriptions(call: Call, query: Query[OrderQuery]) -> OrderList:
    """List subscriptions, by card and by wallet."""
    return await _page(call, query, "subscriptions")


async def _page(call: Call, query: OrderQuery, what: What) -> OrderList:
    found = await call.services.reads.read(
        lambda conn: order_list.page(
            conn,
            what,
            of_app=query.app,
            platform=query.platform,
            status=query.status,
            oldest_first=query.oldest_first,
            before=query.before,
            size=query.size + 1,
        )
    )
    page, further = page_of(found, query.size, lambda order: order.row_id)
    return OrderList(next=further, orders=[order_row(order) for order in page])


def order_row(order: ListedOrder) -> OrderRow:
    return OrderRow(
        row_id=order.row_id,
        app=order.app_id,
        user_id=order.uid,
        platform=order.platform,
        config=order.config,
        platform_id=order.platform_id,
        status=order.status,
        product=order.product,
        amount=order.amount,
        currency=order.currency,
        created_at=rfc3339(order.created_at),
        ends_at=None if order.ends_at is None else rfc3339(order.ends_at),
    )


ORDER_ROUTES = [
    Endpoint("GET", "/admin/api/payments/orders", list_orders, FOR_VIEWERS),
    Endpoint("GET", "/admin/api/payments/subscriptions", list_subscriptions, FOR_VIEWERS),
]
