"""A small application of orders, whose endpoints accept an `Idempotency-Key`."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from app.accounts.routes import ACCOUNT_ROUTES
from app.http.callers.area import Area
from app.http.callers.caller import Access
from app.http.callers.limits import Limit
from app.http.rows.endpoint import Call, Endpoint, alias
from app.http.rows.inputs import Body, Path, Query
from app.http.rows.replies import Json
from app.http.rows.transactions import Transaction
from streams.wire.errors import ItemNotFound
from streams.wire.ids import new_id
from streams.wire.model import Model, QueryInt

ORDERS = Area("orders", "Orders", "Orders of users.", s2s=True, scope="orders")
_ADD = "insert into orders values ($1, $2, $3)"
TABLE = """
create table if not exists orders (order_id text primary key, operation_id text not null, item text not null)
"""


class Order(Model):
    item: str = ""


class OrderQuery(Model):
    count: QueryInt = 1


class ShopPath(Model):
    shop: str


class OrderReply(Model):
    order_id: str
    item: str


async def _nothing(*_: Any) -> None: ...


class Shop:
    """The handlers. A test replaces what happens `before`, `inside` and `after` their transaction."""

    def __init__(self) -> None:
        self.operation_ids: list[str] = []
        self.before: Callable[[], Awaitable[None]] = _nothing
        self.inside: Callable[[Any], Awaitable[None]] = _nothing
        self.after: Callable[[], Awaitable[None]] = _nothing

    async def order(
        self, call: Call, transaction: Transaction, query: Query[OrderQuery], body: Body[Order]
    ) -> Json[OrderReply]:
        """Order an item."""
        self.operation_ids.append(transaction.operation_id)
        await self.before()
        async with transaction.begin() as conn:
            order_id = new_id()
            await conn.execute(_ADD, order_id, transaction.operation_id, body.item)
            await self.inside(conn)
            reply = transaction.answer(
                Json({"order_id": order_id, "item": body.item}, {"X-Order": str(query.count)})
            )
        await self.after()
        return reply

    async def order_there(self, call: Call, transaction: Transaction, path: Path[ShopPath]) -> None:
        """Order anything."""
        async with transaction.begin() as conn:
            await conn.execute(_ADD, new_id(), transaction.operation_id, path.shop)
            transaction.answer(None)

    async def order_nothing(self, call: Call, transaction: Transaction) -> None:
        """Order nothing."""
        async with transaction.begin():
            transaction.answer(None)

    async def begin_nothing(self, call: Call, transaction: Transaction) -> None:
        """Return without a transaction."""

    async def answer_nothing(self, call: Call, transaction: Transaction) -> None:
        """Return without an answer."""
        async with transaction.begin() as conn:
            await conn.execute("insert into orders values ('', '', '')")

    @property
    def rows(self) -> list[Endpoint]:
        order = Endpoint("POST", "/bp/order", self.order, ORDERS, limit=Limit("server"), errors=(ItemNotFound,))
        return [
            *ACCOUNT_ROUTES,
            order,
            alias(order, "/bp/old_order"),
            Endpoint("DELETE", "/bp/order", self.order_nothing, ORDERS),
            Endpoint("POST", "/bp/order/{shop}", self.order_there, replace(ORDERS, access=Access.SIGNED)),
            Endpoint("POST", "/bp/begin_nothing", self.begin_nothing, ORDERS),
            Endpoint("POST", "/bp/answer_nothing", self.answer_nothing, ORDERS),
        ]
