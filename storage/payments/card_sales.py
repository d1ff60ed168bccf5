"""Payments and invoices at the card platform that have granted something."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.postgres import Connection


@dataclass(frozen=True, slots=True)
class CardSale:
    sale_id: str
    uid: str
    reversed_by: str | None
    """The refund or dispute that has taken the grant back."""

    @property
    def key(self) -> str:
        """The key of the grant in the ledger."""
        return key_of(self.sale_id)


def key_of(sale_id: str) -> str:
    return f"card:{sale_id}"


_ADD = """
insert into card_sales (app_id, config, sale_id, uid, intent_id) values ($1, $2, $3, $4, $5)
on conflict (app_id, config, sale_id) do update set intent_id = coalesce(card_sales.intent_id, excluded.intent_id)
"""


async def add(conn: Connection, app_id: str, uid: str, *, config: str, sale_id: str, intent_id: str | None) -> None:
    """Store a sale. A later call may add the payment of an invoice."""
    await conn.execute(_ADD, app_id, config, sale_id, uid, intent_id)


_KNOWN = "select sale_id from card_sales where app_id = $1 and config = $2 and sale_id = any($3)"


async def known(conn: Connection, app_id: str, *, config: str, sale_ids: Sequence[str]) -> set[str]:
    """Return those of `sale_ids` that are stored."""
    return {row["sale_id"] for row in await conn.fetch(_KNOWN, app_id, config, sale_ids)}


_FIND = """
select sale_id, uid, reversed_by from card_sales where app_id = $1 and config = $2 and intent_id = $3
"""


async def of_intent(conn: Connection, app_id: str, *, config: str, intent_id: str) -> CardSale | None:
    row = await conn.fetchrow(_FIND, app_id, config, intent_id)
    return None if row is None else CardSale(**row)


_SET = "update card_sales set reversed_by = $4 where app_id = $1 and config = $2 and sale_id = $3"


async def set_reversed(
    conn: Connection, app_id: str, *, config: str, sale_id: str, reversed_by: str | None
) -> None:
    await conn.execute(_SET, app_id, config, sale_id, reversed_by)
