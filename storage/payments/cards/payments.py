"""Payments with a card that an app's server has created."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from storage.configs.kinds.products import Product
from storage.postgres.connection import one
from storage.postgres.database import Connection
from streams.wire.errors import ItemNotFound, listed
from streams.wire.money import Money

FINAL = frozenset({"succeeded", "canceled", "abandoned"})
"""Statuses that no longer change."""


class CardPaymentNotFound(ItemNotFound):
    """No payment of the user has this id at the card platform."""

    def __init__(self, intent_id: str) -> None:
        super().__init__(f"payment intent {listed([intent_id])} does not exist")


@dataclass(frozen=True, slots=True)
class CardPayment:
    """A payment. The fields are columns."""

    payment_id: str
    """Part of the keys of calls, and known to the platform."""
    app_id: str
    uid: str
    config: str
    amount: int
    currency: str
    product_id: str | None
    product: dict[str, Any] | None
    customer_id: str | None
    payment_method: str | None
    confirms: bool
    """Whether the payment method is charged at once."""
    intent_id: str | None
    status: str
    created_at: datetime

    @property
    def money(self) -> Money:
        return Money(self.amount, self.currency)

    @property
    def sold(self) -> Product | None:
        """The product as it was when it was offered."""
        return None if self.product is None else Product.model_validate(self.product)


@dataclass(frozen=True, slots=True)
class NewCardPayment:
    payment_id: str
    app_id: str
    uid: str
    config: str
    money: Money
    product_id: str | None
    product: Product | None
    email: str | None
    device_info: Mapping[str, Any] | None


_COLUMNS = ", ".join(CardPayment.__slots__)
_ADD = """
insert into card_payments (
    payment_id, app_id, uid, config, amount, currency, product_id, product, created_at, checked_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9) on conflict do nothing returning true
"""
_ADD_DETAILS = """
insert into card_payment_details (payment_id, app_id, uid, email, device_info) values ($1, $2, $3, $4, $5)
"""
_FIND = f"select {_COLUMNS} from card_payments where payment_id = $1"


async def add(conn: Connection, new: NewCardPayment, *, now: datetime) -> CardPayment:
    """Store a payment, or return the one that an earlier attempt has stored. `conn` is in a transaction."""
    product = None if new.product is None else new.product.model_dump(mode="json", exclude_none=True)
    added = await conn.fetchval(
        _ADD, new.payment_id, new.app_id, new.uid, new.config, new.money.amount, new.money.currency,
        new.product_id, product, now,
    )  # fmt: skip
    if added:
        await conn.execute(_ADD_DETAILS, new.payment_id, new.app_id, new.uid, new.email, new.device_info)
    return CardPayment(**one(await conn.fetchrow(_FIND, new.payment_id)))


_PREPARE = f"""
update card_payments set customer_id = $2, payment_method = $3, confirms = $4
where payment_id = $1 returning {_COLUMNS}
"""


async def prepare(
    conn: Connection, payment_id: str, *, customer_id: str, payment_method: str | None, confirms: bool
) -> CardPayment:
    """Store the parameters of the call that creates the payment at the platform."""
    return CardPayment(**one(await conn.fetchrow(_PREPARE, payment_id, customer_id, payment_method, confirms)))


_OF_USER = f"""
select {_COLUMNS} from card_payments where app_id = $1 and config = $3 and intent_id = $4 and uid = $2
"""


async def of_user(conn: Connection, app_id: str, uid: str, *, config: str, intent_id: str) -> CardPayment | None:
    row = await conn.fetchrow(_OF_USER, app_id, uid, config, intent_id)
    return None if row is None else CardPayment(**row)


_OF_INTENT = f"""
select {_COLUMNS} from card_payments
where app_id = $1 and config = $2 and (intent_id = $3 or (intent_id is null and payment_id = $4))
"""


async def of_intent(
    conn: Connection, app_id: str, *, config: str, intent_id: str, payment_id: str
) -> CardPayment | None:
    """Return the payment of an intent. `payment_id` is that of its metadata, in case no row has the intent yet."""
    row = await conn.fetchrow(_OF_INTENT, app_id, config, intent_id, payment_id)
    return None if row is None else CardPayment(**row)


_SET = f"""
update card_payments set intent_id = $2, status = $3, checked_at = $4
where payment_id = $1 and status not in ({", ".join(f"'{status}'" for status in sorted(FINAL - {"abandoned"}))})
returning true
"""


async def set_intent(conn: Connection, payment_id: str, *, intent_id: str, status: str, now: datetime) -> bool:
    """Store the state of a payment. Return `False` if it had succeeded or was cancelled before."""
    return await conn.fetchval(_SET, payment_id, intent_id, status, now) is not None


_DEVICE_INFO = "select device_info from card_payment_details where payment_id = $1"


async def device_info(conn: Connection, payment_id: str) -> dict[str, Any] | None:
    """Return the `device_info` of the request. `None`: it had none, or the user is deactivated."""
    found: dict[str, Any] | None = await conn.fetchval(_DEVICE_INFO, payment_id)
    return found
