"""Subscriptions of the wallet platform (§2.9)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from storage.jobs.jobs import Job
from storage.payments.wallet import reconciliation
from storage.postgres.connection import one
from storage.postgres.database import Connection
from streams.wire.model import Model, Moment

NEW = "NEW"
"""The status of a subscription whose id at the platform is not known yet. All others are those of the platform."""
PENDING = "APPROVAL_PENDING"
ACTIVE = "ACTIVE"
SUSPENDED = "SUSPENDED"
CANCELLED = "CANCELLED"
EXPIRED = "EXPIRED"
UNPAID_STATUSES = frozenset({NEW, PENDING, "APPROVED"})
"""The states before the first payment."""
RENEWING_STATUSES = frozenset({ACTIVE, SUSPENDED})
"""The states in which the platform takes payments."""
ENDED_STATUSES = frozenset({CANCELLED, EXPIRED})


class EndReplacedSubscription(Job):
    """Cancel a subscription that another one replaces, and refund the unused part. Retried for up to a day."""

    task: ClassVar[str] = "end_replaced_subscription"
    attempts: ClassVar[int] = 30
    app_id: str
    row_id: str


class PlanChange(Model):
    """A change of the plan of a subscription at the platform."""

    plan_id: str
    since: Moment
    """Later payments are of this plan."""

    @property
    def stored(self) -> Mapping[str, Any]:
        return self.model_dump(mode="json")


@dataclass(frozen=True, slots=True)
class WalletSubscription:
    """A subscription. The fields are columns."""

    row_id: str
    """The keys of all calls for the subscription begin with it."""
    uid: str
    config: str
    """Name of the config of kind `walletpay`."""
    bp_product_id: str
    product: Mapping[str, Any]
    """The product as it was when it was subscribed to."""
    plan_id: str
    """The plan that was subscribed to."""
    country: str
    return_url: str
    cancel_url: str
    created_at: datetime
    subscription_id: str | None = None
    """The platform's id."""
    status: str = NEW
    activated_at: datetime | None = None
    """When it was first read as active."""
    superseded_at: datetime | None = None
    """When another subscription has replaced it. The part of its payments that was unused then is refunded."""
    plan_changes: Sequence[Mapping[str, Any]] = ()
    """The changes of its plan as objects of `PlanChange`, the oldest first."""
    check_at: datetime | None = None
    """When it is read back from the platform. `None`: nothing is expected to change."""
    applied_read: int = 0
    """The number of the last read that was applied. An earlier one that ends later does not change the state."""

    @property
    def platform_id(self) -> str:
        assert self.subscription_id is not None, "only subscriptions with an id are read"
        return self.subscription_id

    @property
    def latest_plan_id(self) -> str:
        """The plan of its next payment, as far as it is known."""
        return self.plan_changes[-1]["plan_id"] if self.plan_changes else self.plan_id

    def plan_at(self, moment: datetime) -> str:
        """Return the plan of a payment that was made at `moment`."""
        changes = [PlanChange.model_validate(change) for change in self.plan_changes]
        return next((change.plan_id for change in reversed(changes) if change.since < moment), self.plan_id)


_COLUMNS = ", ".join(WalletSubscription.__slots__)
_ADD = f"""
insert into wallet_subscriptions (app_id, {_COLUMNS})
values ($1, {", ".join(f"${number}" for number in range(2, 2 + len(WalletSubscription.__slots__)))})
on conflict (row_id) do nothing
"""
_BY_ROW = f"select {_COLUMNS} from wallet_subscriptions where app_id = $1 and row_id = $2"


async def add(conn: Connection, app_id: str, *, subscription: WalletSubscription) -> WalletSubscription:
    """Store a new subscription, or return the one that an earlier attempt at the same request has stored."""
    await conn.execute(_ADD, app_id, *(getattr(subscription, name) for name in WalletSubscription.__slots__))
    return await get(conn, app_id, row_id=subscription.row_id)


async def get(conn: Connection, app_id: str, *, row_id: str) -> WalletSubscription:
    """Return a subscription that exists."""
    return WalletSubscription(**one(await conn.fetchrow(_BY_ROW, app_id, row_id)))


_TO_APPROVE = f"""
select {_COLUMNS} from wallet_subscriptions
where app_id = $1 and uid = $2 and bp_product_id = $3 and config = $4 and plan_id = $5
    and status in ('{NEW}', '{PENDING}') and created_at > $6
    and not exists (select from wallet_upgrades where new_row = row_id)
order by row_id desc limit 1
"""


async def to_approve(
    conn: Connection, app_id: str, *, like: WalletSubscription, since: datetime
) -> WalletSubscription | None:
    """Return a subscription of the same user to the same plan that waits for its approval since `since` or later.

    Those of upgrades do not count.
    """
    row = await conn.fetchrow(_TO_APPROVE, app_id, like.uid, like.bp_product_id, like.config, like.plan_id, since)
    return None if row is None else WalletSubscription(**row)


_EXISTS = "select exists (select from wallet_subscriptions where app_id = $1 and row_id = $2)"


async def exists(conn: Connection, app_id: str, *, row_id: str) -> bool:
    found: bool = await conn.fetchval(_EXISTS, app_id, row_id)
    return found


_REMOVE = "delete from wallet_subscriptions where app_id = $1 and row_id = $2 and subscription_id is null"


async def remove(conn: Connection, app_id: str, *, row_id: str) -> None:
    """Delete a subscription that the platform has refused to create."""
    await conn.execute("delete from wallet_upgrades where app_id = $1 and new_row = $2", app_id, row_id)
    await conn.execute(_REMOVE, app_id, row_id)


_FIND = f"select {_COLUMNS} from wallet_subscriptions where app_id = $1 and subscription_id = $2"


async def find(conn: Connection, app_id: str, *, subscription_id: str) -> WalletSubscription | None:
    """Return the subscription with an id of the platform, of any user."""
    row = await conn.fetchrow(_FIND, app_id, subscription_id)
    return None if row is None else WalletSubscription(**row)


_UNENDED = f"""
select {_COLUMNS} from wallet_subscriptions
where app_id = $1 and uid = $2 and subscription_id is not null and status not in ('CANCELLED', 'EXPIRED')
"""


async def unended_of_user(conn: Connection, app_id: str, uid: str) -> list[WalletSubscription]:
    """Return the subscriptions of a user that are paid, or may still be paid."""
    return [WalletSubscription(**row) for row in await conn.fetch(_UNENDED, app_id, uid)]


_UPDATE = """
update wallet_subscriptions set subscription_id = coalesce(subscription_id, $3), status = $4,
    activated_at = coalesce(activated_at, $5), superseded_at = coalesce(superseded_at, $6), plan_changes = $7,
    check_at = $8, applied_read = $9
where app_id = $1 and row_id = $2
"""


async def update(conn: Connection, app_id: str, *, subscription: WalletSubscription) -> None:
    """Store a subscription as read from the platform. `conn` is in a transaction that has locked the user."""
    await conn.execute(
        _UPDATE,
        app_id,
        subscription.row_id,
        subscription.subscription_id,
        subscription.status,
        subscription.activated_at,
        subscription.superseded_at,
        subscription.plan_changes,
        subscription.check_at,
        subscription.applied_read,
    )


_BEGIN_READ = """
update wallet_subscriptions set reads = reads + 1 where app_id = $1 and row_id = $2 returning reads
"""


async def begin_read(conn: Connection, app_id: str, *, row_id: str) -> int:
    """Return the number of a read from the platform that begins now."""
    number: int = await conn.fetchval(_BEGIN_READ, app_id, row_id)
    return number


_CLAIMS = reconciliation.claims_of("wallet_subscriptions", _COLUMNS, settled="'CANCELLED', 'EXPIRED'")


async def claim_due(
    conn: Connection, app_id: str, *, config: str, now: datetime, again_at: datetime, limit: int
) -> list[WalletSubscription]:
    """Return subscriptions of a config that are to be read back, and postpone them to `again_at`.

    Those that have not ended come first, then the most overdue.
    """
    rows = await reconciliation.claim_due(
        conn, app_id, claims=_CLAIMS, config=config, now=now, again_at=again_at, limit=limit
    )
    return [WalletSubscription(**row) for row in rows]
