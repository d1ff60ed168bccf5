"""Sales at the card platform: paid payments, and paid invoices of subscriptions."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from storage.postgres.database import Connection


@dataclass(frozen=True, slots=True)
class CardSale:
    """A paid payment or invoice. The fields are columns."""

    app_id: str
    config: str
    sale_id: str
    """The platform's id of the payment or invoice."""
    uid: str
    intent_id: str | None
    """The payment, which refunds and disputes name. An invoice over nothing has none."""
    subscription_id: str | None
    product_id: str | None
    reversed_by: str | None = None
    """The last refund or dispute that has reversed it, or a part of it."""

    @property
    def key(self) -> str:
        """The key of its grant in the ledger, if it has granted anything."""
        return key_of(self.sale_id)


def key_of(sale_id: str) -> str:
    return f"card:{sale_id}"


_COLUMNS = ", ".join(CardSale.__slots__)
_ADD = f"""
insert into card_sales ({_COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (app_id, config, sale_id) do update set intent_id = coalesce(card_sales.intent_id, excluded.intent_id)
"""


async def add(conn: Connection, sale: CardSale) -> None:
    """Store a sale. A later call may add the payment of an invoice."""
    await conn.execute(_ADD, *astuple(sale))


_KNOWN = "select sale_id from card_sales where app_id = $1 and config = $2 and sale_id = any($3)"


async def known(conn: Connection, app_id: str, *, config: str, sale_ids: Sequence[str]) -> set[str]:
    """Return those of `sale_ids` that are stored."""
    return {row["sale_id"] for row in await conn.fetch(_KNOWN, app_id, config, sale_ids)}


_FIND = f"select {_COLUMNS} from card_sales where app_id = $1 and config = $2 and intent_id = $3"


async def of_intent(conn: Connection, app_id: str, *, config: str, intent_id: str) -> CardSale | None:
    row = await conn.fetchrow(_FIND, app_id, config, intent_id)
    return None if row is None else CardSale(**row)


_INTENT = "select intent_id from card_sales where app_id = $1 and config = $2 and sale_id = $3"


async def intent_of(conn: Connection, app_id: str, *, config: str, sale_id: str) -> str | None:
    """Return the payment of a sale. `None`: it has none, or does not exist."""
    intent: str | None = await conn.fetchval(_INTENT, app_id, config, sale_id)
    return intent


_SET_REVERSED = "update card_sales set reversed_by = $4 where app_id = $1 and config = $2 and sale_id = $3"


async def set_reversed(conn: Connection, sale: CardSale, *, by: str | None) -> None:
    """Store the refund or dispute that has reversed a sale, or `None` once it is undone."""
    await conn.execute(_SET_REVERSED, sale.app_id, sale.config, sale.sale_id, by)
