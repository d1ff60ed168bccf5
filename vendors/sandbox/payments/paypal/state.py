"""The state of the sandbox's PayPal: its merchants, each with a clock of its own, and their events."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from vendors.sandbox.deliveries import FaultSource
from vendors.sandbox.payments.paypal.records import (
    Dispute,
    Order,
    Payment,
    Payout,
    Refund,
    RefundStatus,
    Subscription,
)
from vendors.sandbox.payments.paypal.wire import new_id, time_text

_MAX_MERCHANTS = 10_000
_MAX_EVENTS = 10_000
_VERSIONS = {"subscription": "2.0", "capture": "2.0", "refund": "2.0", "checkout-order": "2.0"}


@dataclass(frozen=True, slots=True)
class Event:
    body: dict[str, Any]
    at: datetime

    @property
    def id(self) -> str:
        return str(self.body["id"])


@dataclass(slots=True)
class Reply:
    """The answer to the first call with a request id. Later calls with the id get it too."""

    at: datetime
    status: int
    body: Any


@dataclass(slots=True)
class Merchant:
    """An account of PayPal with one app, whose `client_id` is its id."""

    client_id: str
    origin: str
    """The address of the sandbox's PayPal, as the merchant's last request has named it."""
    offset: timedelta = timedelta()
    """How far its clock is ahead of real time."""
    products: dict[str, dict[str, Any]] = field(default_factory=dict)
    plans: dict[str, dict[str, Any]] = field(default_factory=dict)
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    orders: dict[str, Order] = field(default_factory=dict)
    payments: dict[str, Payment] = field(default_factory=dict)
    """The captures of orders and the sales of subscriptions."""
    refunds: dict[str, Refund] = field(default_factory=dict)
    refunds_as: RefundStatus = "COMPLETED"
    """The status of further refunds that calls make."""
    refund_refusal: str = ""
    """The name of the error of refunds that exceed a sale. Empty: the one that says so."""
    refunds_whole_sales: bool = False
    """Whether refunds of a part of a sale are refused."""
    disputes: dict[str, Dispute] = field(default_factory=dict)
    payouts: dict[str, Payout] = field(default_factory=dict)
    hooks: dict[str, str] = field(default_factory=dict)
    """The URLs of its webhooks, by id."""
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=_MAX_EVENTS))
    garbage: list[Any] = field(default_factory=list)
    """What each page of its events begins with."""
    unsent: list[Event] = field(default_factory=list)
    """The events of the action under way, which are sent at its end."""
    faults: FaultSource = field(default_factory=FaultSource)
    """The faults of its webhooks."""
    replies: dict[tuple[str, str], Reply] = field(default_factory=dict)
    """By path and request id."""
    tokens: dict[str, float] = field(default_factory=dict)
    """When each access token expires, in seconds of the process's clock."""

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def emit(self, event_type: str, resource_type: str, resource: dict[str, Any], *, at: datetime) -> None:
        """Record an event. It is sent to the webhooks at the end of the action."""
        event_id = f"WH-{new_id()}-{new_id()}"
        body = {
            "id": event_id,
            "event_version": "1.0",
            "create_time": time_text(at),
            "resource_type": resource_type,
            **({"resource_version": _VERSIONS[resource_type]} if resource_type in _VERSIONS else {}),
            "event_type": event_type,
            "summary": f"{event_type}: {resource.get('id', '')}",
            "resource": resource,
            "links": [self.link("self", f"/v1/notifications/webhooks-events/{event_id}")],
        }
        event = Event(body, at)
        self.events.append(event)
        self.unsent.append(event)

    def link(self, relation: str, path: str, method: str = "GET") -> dict[str, str]:
        return {"href": f"{self.origin}{path}", "rel": relation, "method": method}


class Merchants:
    """The merchants, which exist from their first call on, and what their customers may approve."""

    def __init__(self, make: Callable[[str, str], Merchant]) -> None:
        self._make = make
        self._merchants: OrderedDict[str, Merchant] = OrderedDict()

    def of(self, client_id: str, origin: str = "") -> Merchant:
        """Return a merchant. Create it if it is new. `origin` is the address at which it calls PayPal."""
        merchant = self._merchants.get(client_id)
        if merchant is None:
            merchant = self._merchants[client_id] = self._make(client_id, origin)
            while len(self._merchants) > _MAX_MERCHANTS:
                self._merchants.popitem(last=False)
        self._merchants.move_to_end(client_id)
        merchant.origin = origin or merchant.origin
        return merchant

    def all(self) -> Iterable[Merchant]:
        """Return the merchants, the most recently used one first."""
        return list(reversed(self._merchants.values()))
