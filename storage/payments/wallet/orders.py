"""Orders of the wallet platform (§2.9): one payment each, for one product."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from storage.payments.wallet import reconciliation
from storage.postgres.connection import one
from storage.postgres.database import Connection
from streams.wire.money import Money

NEW = "NEW"
"""The status of an order whose id at the platform is not known yet. All others are those of the platform."""
VOIDED = "VOIDED"


@dataclass(frozen=True, slots=True)
class WalletOrder:
    """An order. The fields are columns."""

    row_id: str
    """The keys of all calls for the order begin with it."""
    uid: str
    config: str
    """Name of the config of kind `walletpay`."""
    bp_product_id: str
    product: Mapping[str, Any]
    """The product as it was when the order was made."""
    amount: int
    currency: str
    return_url: str
    cancel_url: str
    created_at: datetime
    order_id: str | None = None
    """The platform's id."""
    status: str = NEW
    declined: int = 0
    """How many captures were declined."""
    check_at: datetime | None = None
    """When it is read back from the platform. `None`: nothing is expected to change."""

    @property
    def platform_id(self) -> str:
        assert self.order_id is not None, "only orders that the platform has created are read"
        return self.order_id

    @property
    def price(self) -> Money:
        return Money(self.amount, self.currency)

    @property
    def capture_key(self) -> str:
        """The key of the next capture. The key of a declined capture would repeat the decline."""
        return f"{self.row_id}:capture:{self.declined}"


_COLUMNS = ", ".join(WalletOrder.__slots__)
_ADD = f"""
insert into wallet_orders (app_id, {_COLUMNS})
values ($1, {", ".join(f"${number}" for number in range(2, 2 + len(WalletOrder.__slots__)))})
on conflict (row_id) do nothing
"""
_BY_ROW = f"select {_COLUMNS} from wallet_orders where app_id = $1 and row_id = $2"


async def add(conn: Connection, app_id: str, *, order: WalletOrder) -> WalletOrder:
    """Store a new order, or return the one that an earlier attempt at the same request has stored."""
    await conn.execute(_ADD, app_id, *(getattr(order, name) for name in WalletOrder.__slots__))
    return WalletOrder(**one(await conn.fetchrow(_BY_ROW, app_id, order.row_id)))


async def remove(conn: Connection, app_id: str, *, row_id: str) -> None:
    """Delete an order that the platform has refused to create."""
    await conn.execute(
        "delete from wallet_orders where app_id = $1 and row_id = $2 and order_id is null", app_id, row_id
    )


_FIND = f"select {_COLUMNS} from wallet_orders where app_id = $1 and order_id = $2"


async def find(conn: Connection, app_id: str, *, order_id: str) -> WalletOrder | None:
    """Return the order with an id of the platform, of any user."""
    row = await conn.fetchrow(_FIND, app_id, order_id)
    return None if row is None else WalletOrder(**row)


async def get(conn: Connection, app_id: str, *, row_id: str) -> WalletOrder:
    """Return an order that exists."""
    return WalletOrder(**one(await conn.fetchrow(_BY_ROW, app_id, row_id)))


async def lock(conn: Connection, app_id: str, *, row_id: str) -> WalletOrder:
    """Return an order that exists. It does not change until the transaction of `conn` ends."""
    return WalletOrder(**one(await conn.fetchrow(f"{_BY_ROW} for update", app_id, row_id)))


_UPDATE = """
update wallet_orders set order_id = coalesce(order_id, $3), status = $4, declined = $5, check_at = $6
where app_id = $1 and row_id = $2
"""


async def update(conn: Connection, app_id: str, *, order: WalletOrder) -> None:
    """Store the state of an order as read from the platform."""
    await conn.execute(_UPDATE, app_id, order.row_id, order.order_id, order.status, order.declined, order.check_at)


_CLAIMS = reconciliation.claims_of("wallet_orders", _COLUMNS, settled="'COMPLETED'")


async def claim_due(
    conn: Connection, app_id: str, *, config: str, now: datetime, again_at: datetime, limit: int
) -> list[WalletOrder]:
    """Return orders of a config that are to be read back, and postpone them to `again_at`.

    Those whose payment is expected to change come first, then the most overdue.
    """
    rows = await reconciliation.claim_due(
        conn, app_id, claims=_CLAIMS, config=config, now=now, again_at=again_at, limit=limit
    )
    return [WalletOrder(**row) for row in rows]
