"""Subscriptions that users have bought with a card."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from storage.accounts import users
from storage.configs.kinds.products import Product
from storage.jobs.jobs import Job
from storage.postgres.connection import one
from storage.postgres.database import Connection
from streams.wire.errors import ItemNotFound, listed

_ENDED = "('refused', 'abandoned', 'canceled', 'incomplete_expired')"
LIVE_STATUSES = frozenset({"trialing", "active", "past_due", "unpaid"})
HAS_RENEWING = """
select exists (
    select from card_subscriptions where app_id = $1 and uid = $2 and canceled_at is null
    and (status in ('trialing', 'active', 'past_due', 'unpaid') or (status = 'new' and customer_id is not null)))
"""
"""Whether a user has subscriptions that renew. The account cannot be deactivated until they are cancelled.

A new subscription counts once its customer is stored, because the platform is called only after that.
"""


class CardSubscriptionNotFound(ItemNotFound):
    """No subscription of the user has this `sub_id`."""

    def __init__(self, subscription_id: str) -> None:
        super().__init__(f"subscription {listed([subscription_id])} does not exist")


class EndSecondCardSubscription(Job):
    """Cancel a subscription whose user has another one to its product. Retried for up to a day."""

    task: ClassVar[str] = "end_second_card_subscription"
    attempts: ClassVar[int] = 30
    app_id: str
    row_id: str


@dataclass(frozen=True, slots=True)
class CardSubscription:
    """A subscription. The fields are columns."""

    row_id: str
    """Part of the keys of calls, and known to the platform."""
    app_id: str
    uid: str
    config: str
    product_id: str
    product: dict[str, Any]
    price_id: str
    customer_id: str | None
    payment_method: str | None
    trial_ends_at: datetime | None
    subscription_id: str | None
    status: str
    period_ends_at: datetime | None
    canceled_at: datetime | None
    """When it was cancelled, by the platform's clock."""
    cancel_at: datetime | None
    """When it is to end, if it was cancelled to a date."""
    superseded_at: datetime | None
    """When it became active although the user had another live subscription to its product. What is paid from then
    on is refunded."""
    applied_read: int
    created_at: datetime

    @property
    def is_live(self) -> bool:
        """Whether it is billed after its period, as `subscribed.has_live` finds out too."""
        if self.status not in LIVE_STATUSES:
            return False
        if self.canceled_at is None:
            return True
        end, period_end = self.cancel_at, self.period_ends_at
        return end is not None and period_end is not None and end > period_end

    @property
    def sold(self) -> Product:
        """The product as it was when it was bought."""
        return Product.model_validate(self.product)


_COLUMNS = ", ".join(CardSubscription.__slots__)
_GET = f"select {_COLUMNS} from card_subscriptions where row_id = $1"
_LIVE = f"""
select {_COLUMNS} from card_subscriptions
where app_id = $1 and uid = $2 and product_id = $3 and status not in {_ENDED} order by row_id limit 1
"""
_ADD = f"""
insert into card_subscriptions (
    row_id, app_id, uid, config, product_id, product, price_id, trial_ends_at, created_at, checked_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
on conflict (row_id) do update set status = 'new' returning {_COLUMNS}
"""


@dataclass(frozen=True, slots=True)
class NewCardSubscription:
    row_id: str
    config: str
    product_id: str
    product: Product
    price_id: str
    trial_ends_at: datetime | None
    """The end of the trial, if there is one."""


async def lock_live(conn: Connection, app_id: str, uid: str, *, product_id: str) -> CardSubscription | None:
    """Lock a user, and return the subscription to a product that has not ended. `conn` is in a transaction."""
    await users.lock(conn, app_id, uid)
    row = await conn.fetchrow(_LIVE, app_id, uid, product_id)
    return None if row is None else CardSubscription(**row)


async def add(
    conn: Connection, app_id: str, uid: str, *, new: NewCardSubscription, now: datetime
) -> CardSubscription:
    """Store a subscription of a locked user who has none to the product."""
    added = await conn.fetchrow(
        _ADD, new.row_id, app_id, uid, new.config, new.product_id,
        new.product.model_dump(mode="json", exclude_none=True), new.price_id,
        new.trial_ends_at, now,
    )  # fmt: skip
    return CardSubscription(**one(added))


_PREPARE = """
update card_subscriptions set customer_id = $2, payment_method = $3
where row_id = $1 and (customer_id is null or customer_id = $4)
"""


async def prepare(
    conn: Connection, row_id: str, *, customer_id: str, replaced: str | None, payment_method: str | None
) -> CardSubscription:
    """Store the parameters of the call that creates the subscription. Return the row.

    The parameters of a concurrent request are kept, unless its customer is `replaced`, which was deleted at the
    platform.
    """
    await conn.execute(_PREPARE, row_id, customer_id, payment_method, replaced)
    return CardSubscription(**one(await conn.fetchrow(_GET, row_id)))


_CLOSE = "update card_subscriptions set status = $2 where row_id = $1 and subscription_id is null"


async def close(conn: Connection, row_id: str, *, status: str) -> None:
    """Store that the platform has no such subscription. `status` is `refused` or `abandoned`."""
    await conn.execute(_CLOSE, row_id, status)


_LINK = f"""
update card_subscriptions set subscription_id = $4
where app_id = $1 and config = $2 and row_id = $3 and (subscription_id is null or subscription_id = $4)
returning {_COLUMNS}
"""


async def link(
    conn: Connection, app_id: str, *, config: str, row_id: str, subscription_id: str
) -> CardSubscription | None:
    """Store the platform's id of a subscription. Return `None` if the app has no such row."""
    row = await conn.fetchrow(_LINK, app_id, config, row_id, subscription_id)
    return None if row is None else CardSubscription(**row)


_FIND = f"""
select {_COLUMNS} from card_subscriptions where app_id = $1 and config = $2 and subscription_id = $3
"""
_OF_USER = f"""
select {_COLUMNS} from card_subscriptions where app_id = $1 and uid = $2 and subscription_id = $3
"""


async def find(conn: Connection, app_id: str, *, config: str, subscription_id: str) -> CardSubscription | None:
    row = await conn.fetchrow(_FIND, app_id, config, subscription_id)
    return None if row is None else CardSubscription(**row)


async def of_user(conn: Connection, app_id: str, uid: str, *, subscription_id: str) -> CardSubscription | None:
    row = await conn.fetchrow(_OF_USER, app_id, uid, subscription_id)
    return None if row is None else CardSubscription(**row)


_UNENDED = f"""
select {_COLUMNS} from card_subscriptions
where app_id = $1 and uid = $2 and subscription_id is not null and status not in {_ENDED}
"""


async def unended_of_user(conn: Connection, app_id: str, uid: str) -> list[CardSubscription]:
    """Return the subscriptions of a user that are paid, or may still be paid."""
    return [CardSubscription(**row) for row in await conn.fetch(_UNENDED, app_id, uid)]


_BEGIN_READ = "update card_subscriptions set reads = reads + 1 where row_id = $1 returning reads"


async def begin_read(conn: Connection, row_id: str) -> int:
    """Return the number of a read from the platform that begins now."""
    number: int = await conn.fetchval(_BEGIN_READ, row_id)
    return number


async def get(conn: Connection, row_id: str) -> CardSubscription:
    """Return a subscription that exists."""
    return CardSubscription(**one(await conn.fetchrow(_GET, row_id)))


_LOCK = f"{_GET} for update"


async def lock(conn: Connection, row_id: str) -> CardSubscription:
    return CardSubscription(**one(await conn.fetchrow(_LOCK, row_id)))


_SET = """
update card_subscriptions
set status = $2, period_ends_at = $3, canceled_at = $4, applied_read = $5, checked_at = $6, check_at = $7,
    cancel_at = $8, superseded_at = $9
where row_id = $1
"""


async def set_read(
    conn: Connection,
    row_id: str,
    *,
    status: str,
    period_ends_at: datetime | None,
    canceled_at: datetime | None,
    cancel_at: datetime | None,
    superseded_at: datetime | None,
    check_at: datetime,
    read: int,
    now: datetime,
) -> None:
    """Store a subscription as read from the platform. `read` is the number of the read.

    `cancel_at` is when it is to end, `check_at` the time of the next read if no payment is open.
    """
    await conn.execute(
        _SET, row_id, status, period_ends_at, canceled_at, read, now, check_at, cancel_at, superseded_at
    )
