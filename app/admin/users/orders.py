"""Admin API: a payment or a subscription of a user with all its traces, and a verdict on what it has granted."""

from typing import Annotated, Any

from pydantic import Field

from app.admin.area import FOR_EDITORS
from app.admin.money.mismatches import MismatchView, mismatch_view
from app.admin.money.order_verdicts import Verdict, verdict_of
from app.admin.money.orders import OrderRow, order_row
from app.admin.users.assets import EntryView, entry_view
from app.admin.users.users import USER_ERRORS, UserPath, user_of
from app.admin.webhooks import WebhookRow, webhook_row
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path
from storage.accounts import users
from storage.assets import assets
from storage.configs.kinds.base import ConfigKind
from storage.configs.kinds.cardpay import CARDPAY
from storage.configs.kinds.walletpay import WALLETPAY
from storage.configs.rows import ConfigKey
from storage.payments import order_list
from storage.payments.order_list import ListedOrder
from streams.wire.errors import ItemNotFound, listed
from streams.wire.model import Model

_PLATFORMS: dict[str, ConfigKind[Any]] = {kind.name: kind for kind in (CARDPAY, WALLETPAY)}


class OrderNotFound(ItemNotFound):
    """The user has no payment and no subscription with this id."""

    def __init__(self, order: str) -> None:
        super().__init__(f"order {listed([order])} does not exist")


class OrderPath(UserPath):
    order: Annotated[str, Field(max_length=128)]
    """A payment or a subscription of the user: the id of this server, or that of its platform."""


class OrderWebhookRow(WebhookRow):
    event_type: str
    """What the platform has reported, such as `PAYMENT.CAPTURE.PENDING`. Empty if the body does not say."""


class OrderTrace(Model):
    """The order with its verdict, ledger entries, webhooks and mismatches."""

    order: OrderRow
    verdict: Verdict
    """`granted`: the user has what was bought. `used`: it was granted and is used up. `ended`: the period is over.
    `refunded`: it was granted, and refunded. The others say why nothing was granted. `not_created`: the platform
    has not confirmed the order. `not_approved`: the payer has not approved it. `not_captured`: it is approved, but
    the money has not arrived. `not_paid`: no payment has succeeded. `declined`: the payment was declined.
    `needs_customer`: the payer must confirm it. `processing`: the platform has not finished it. `under_review`: the
    platform holds the money. `canceled`: it was canceled or has expired. `no_product`: the
    payment was created without a product. `amount_differs`: another amount was paid than the price.
    `webhook_failed`: processing a webhook fails. `config_unusable`: the config of its platform does not exist or
    cannot be used, so the platform cannot be asked. `paid_not_granted`: it is paid, but has no ledger entry."""
    entries: list[EntryView]
    """The ledger entries that it has caused, the oldest first."""
    webhooks: list[OrderWebhookRow]
    """The webhooks within three days that name it, the oldest first."""
    mismatches: list[MismatchView]


async def read_order(call: Call, path: Path[OrderPath]) -> OrderTrace:
    """Read a payment or a subscription of a user with all its traces.

    The verdict says whether the purchase was granted and, if not, why.
    """
    now = call.services.clock.now(path.app)
    async with call.services.database.connection() as conn:
        await user_of(call, conn, path, find=users.find_any)
        order = await order_list.find(conn, path.app, path.user_id, order=path.order)
        if order is None:
            raise OrderNotFound(path.order)
        entries = await order_list.entries(conn, order)
        subjects = [
            name for name in (order.row_id, order.platform_id, *(entry.entry.key for entry in entries)) if name
        ]
        subjects += [entry.entry.key.rpartition(":")[2] for entry in entries]
        mismatches = await order_list.mismatches(conn, order, subjects=subjects)
        webhooks = await order_list.webhooks(conn, order)
        owned = await assets.of_user(conn, path.app, path.user_id)
    verdict = verdict_of(
        order,
        entries,
        assets=owned,
        mismatches=mismatches,
        webhooks=webhooks,
        config_usable=_config_usable(call, order),
        now=now,
    )
    return OrderTrace(
        order=order_row(order),
        verdict=verdict,
        entries=[entry_view(entry) for entry in entries],
        webhooks=[
            OrderWebhookRow(**webhook_row(webhook.state).model_dump(), event_type=webhook.event_type)
            for webhook in webhooks
        ],
        mismatches=[mismatch_view(mismatch) for mismatch in mismatches],
    )


def _config_usable(call: Call, order: ListedOrder) -> bool:
    configs, kind = call.services.configs, _PLATFORMS[order.platform]
    key = ConfigKey(order.app_id, kind.name, order.config)
    return configs.exists(kind, order.app_id, order.config) and configs.fault(key) is None


USER_ORDER_ROUTES = [
    Endpoint(
        "GET",
        "/admin/api/users/{app}/{user_id}/orders/{order}",
        read_order,
        FOR_EDITORS,
        errors=(*USER_ERRORS, OrderNotFound),
    ),
]
