"""The events that are reported to the sinks of an app, stored in the transaction of the reported change."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from storage.configs.kinds.events import EVENTS, EventName
from storage.configs.store import ConfigStore
from storage.postgres.database import Connection
from streams.wire.errors import ConfigInvalid
from streams.wire.ids import new_id
from streams.wire.model import Model

AccountChange = Literal["sign_up", "linked", "unlinked", "frozen", "recovered", "banned", "unbanned", "deactivated"]
PurchaseKind = Literal["charge", "renewal", "refund", "restored"]


class ReportedEvent(Model):
    """The data of an event. A new event only needs a subclass with the name of its `event`."""

    event: ClassVar[EventName]
    user_id: str


class AccountEvent(ReportedEvent):
    """A change of an account."""

    event: ClassVar[EventName] = "account"
    change: AccountChange
    platform: str | None = None
    """The platform of the identity that signed up, was linked or was unlinked."""
    until: str | None = Field(default=None, exclude_if=lambda until: until is None)
    """When a ban ends. Absent: it has no end, or this is another change."""


class AssetEvent(ReportedEvent):
    """An entry of the ledger of assets. The fields are those of the entry."""

    event: ClassVar[EventName] = "asset"
    key: str
    kind: str
    name: str
    type: str
    subscription: str
    quantity: int
    starts_at: str | None
    ends_at: str | None
    platform: str
    product_id: str
    bp_product_id: str
    receipt_id: str
    origin: str
    channel: str
    is_trial: bool
    renews: bool
    grace_ends_at: str | None
    reverses: str
    happened_at: str | None


class PurchaseEvent(ReportedEvent):
    """Money that a payment platform has charged or refunded."""

    event: ClassVar[EventName] = "purchase"
    kind: PurchaseKind
    """`renewal`: a later payment of a subscription. `restored`: a refund has failed, or a dispute was won."""
    platform: str
    config: str
    transaction_id: str
    """The platform's id of the payment. A refund names the payment that is refunded."""
    refund_id: str | None = None
    """The platform's id of the refund or dispute, if it is known."""
    subscription_id: str | None = None
    product_id: str | None = None
    """The product id of this service."""
    amount: int
    """In minor units of the currency."""
    currency: str
    device_info: dict[str, Any] | None = None
    """The data that the app sent with the payment."""


class EmailOperation(ReportedEvent):
    """Something that happened to an email of an app's strategy (§6.3)."""

    event: ClassVar[EventName] = "email_operation"
    email: str
    """The recipient."""
    status: Literal["open"]
    extra: str
    """A JSON object with `email`, `user_id`, `message_id`, `user_agent`, `ip` and `machine_open`."""
    message_id: str


class Happened(NamedTuple):
    """An event that is stored together with others. A repeated attempt uses the same id."""

    event_id: str
    app_id: str
    event: ReportedEvent
    at: datetime
    """The time of the app's clock."""


_ADD_ALL = """
insert into reported_events (event_id, app_id, sink, event, uid, happened_at, data)
select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::jsonb[])
"""
_ADD = """
insert into reported_events (event_id, app_id, sink, event, uid, happened_at, data)
select $1, $2, sink, $4, $5, $6, $7 from unnest($3::text[]) as sink
"""


class EventSinks:
    """The sinks of all apps, by the events that they want."""

    def __init__(self, configs: ConfigStore) -> None:
        self._configs = configs
        self._version = -1
        self._wanting: dict[tuple[str, EventName], list[str]] = {}

    def want(self, app_id: str, event: EventName) -> list[str]:
        """Return the names of an app's sinks to which an event is reported."""
        if self._version != self._configs.version:
            self._version = self._configs.version
            self._wanting.clear()
        names = self._wanting.get((app_id, event))
        if names is None:
            names = self._wanting[app_id, event] = self._find(app_id, event)
        return names

    async def report(self, conn: Connection, app_id: str, event: ReportedEvent, *, now: datetime) -> None:
        """Store an event for the sinks that want it. Without such a sink, this does not access the database.

        `conn` is in the transaction of the reported change. `now` is the time of the app's clock.
        """
        if sinks := self.want(app_id, event.event):
            data = event.model_dump()
            await conn.execute(_ADD, new_id(), app_id, sinks, event.event, event.user_id, now, data)

    async def report_all(self, conn: Connection, events: Sequence[Happened]) -> None:
        """Store events for the sinks that want them, in one statement. `conn`: see `report`."""
        rows = [
            (
                happened.event_id,
                happened.app_id,
                sink,
                happened.event.event,
                happened.event.user_id,
                happened.at,
                data,
            )
            for happened in events
            for data in [happened.event.model_dump()]
            for sink in self.want(happened.app_id, happened.event.event)
        ]
        if rows:
            await conn.execute(_ADD_ALL, *map(list, zip(*rows, strict=True)))

    def _find(self, app_id: str, event: EventName) -> list[str]:
        found = []
        for name in self._configs.names(EVENTS, app_id):
            with suppress(ConfigInvalid):  # The events that it wants are unknown.
                if event in self._configs.get(EVENTS, app_id, name).value.events:
                    found.append(name)
        return found
