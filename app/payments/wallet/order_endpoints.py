"""The endpoints of one-off orders by wallet (§4.11)."""

from typing import Annotated

from pydantic import Field

from app.assets.assets import assets_of
from app.assets.view import AssetView
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body, Path
from app.http.rows.transactions import Transaction
from app.payments.posting import begin_client_posting
from app.payments.wallet import order_sync as wallet_order_sync
from app.payments.wallet.order_sync import APPROVED, COMPLETED, apply_order, create_at_platform, status_of
from app.payments.wallet.wallet import account_of, product_for, return_urls, soon
from storage.configs.kinds.products import Country
from storage.payments.wallet import orders as wallet_orders
from storage.payments.wallet.orders import WalletOrder
from streams.wire.errors import ConfigInvalid, InvalidOperation, InvalidParameter, ItemNotFound, listed
from streams.wire.model import Model
from streams.wire.money import Money
from vendors.payments.paypal.errors import PayPalRefused
from vendors.payments.paypal.fields import rounded
from vendors.payments.paypal.orders import Order

_CAPTURED = "ORDER_ALREADY_CAPTURED"
_NOT_APPROVED = "ORDER_NOT_APPROVED"
_DECLINED = frozenset(
    {
        "INSTRUMENT_DECLINED",
        "PAYER_ACTION_REQUIRED",
        "TRANSACTION_REFUSED",
        "PAYER_CANNOT_PAY",
        "MAX_NUMBER_OF_PAYMENT_ATTEMPTS_EXCEEDED",
        "COMPLIANCE_VIOLATION",
    }
)
"""The issues of a declined payment. The payer may approve the order again."""


class OrderNotFound(ItemNotFound):
    """No order of the user has this id."""

    def __init__(self, order_id: str) -> None:
        super().__init__(f"order {listed([order_id])} does not exist")


class OrderNotApproved(InvalidOperation):
    """The payer has not approved the order, or it has expired."""


class NewOrder(Model):
    product_id: str = Field(min_length=1, max_length=128)
    """Name of a config of kind `products`."""
    country_code: Country | None = None
    """The country of the user, for products whose price depends on it."""


class OrderBody(Model):
    order_id: str = Field(min_length=1, max_length=128)


class OrderPath(Model):
    order_id: Annotated[str, Field(max_length=1024)]
    """The platform's id of the order."""


class WalletOrderView(Model):
    id: str
    status: str
    """The platform's state. `COMPLETED` means that it is paid."""
    amount: int
    """Minor units, such as cents."""
    currency: str
    """In lower case."""
    approve_link_href: str
    """The page on which the user approves the payment. Empty once it is approved."""


class OrderReply(Model):
    """The order."""

    walletpay_order: WalletOrderView


class OrderWithAssets(OrderReply):
    """The order, with the user's assets."""

    assets: list[AssetView]
    """All assets of the user."""


async def new_order(call: Call, transaction: Transaction, body: Body[NewOrder]) -> OrderReply:
    """Create an order for a product that is bought once.

    Send the user to `approve_link_href`, then capture the order.
    """
    order = await _store_order(call, transaction, body)
    platform_order: Order | None
    if order.order_id is None:
        platform_order = await create_at_platform(call.services, call.app_id, order)
    else:  # An earlier attempt at the same request has created it, and the platform may have forgotten the key.
        platform_order = await wallet_order_sync.read_order(call.services, call.app_id, order)
    async with transaction.begin() as conn:
        applied = await apply_order(await begin_client_posting(call, conn), order, platform_order)
        return transaction.answer(OrderReply(walletpay_order=_view(applied, platform_order)))


async def capture(call: Call, transaction: Transaction, body: Body[OrderBody]) -> OrderReply:
    """Capture the payment of an order that the user has approved.

    If the payment is declined, the order is not `COMPLETED`, and the user may approve it again with another payment
    method. A repeat for a completed order returns the order again.
    """
    order = await _own_order(call, body.order_id)
    platform_order, is_declined = await _capture_at_platform(call, order)
    async with transaction.begin() as conn:
        declined = order.declined + is_declined
        applied = await apply_order(
            await begin_client_posting(call, conn), order, platform_order, declined=declined
        )
        return transaction.answer(OrderReply(walletpay_order=_view(applied, platform_order)))


async def sync_order(call: Call, path: Path[OrderPath]) -> OrderWithAssets:
    """Read an order from the platform, granting a paid product.

    The order is not captured.
    """
    order = await _own_order(call, path.order_id)
    applied, platform_order = await wallet_order_sync.sync_order(
        call.services, call.app_id, order, channel="client"
    )
    return await _with_assets(call, _view(applied, platform_order))


async def fetch_order(call: Call, path: Path[OrderPath]) -> OrderWithAssets:
    """Read an order from the platform.

    The assets do not change.
    """
    order = await _own_order(call, path.order_id)
    return await _with_assets(
        call, _view(order, await wallet_order_sync.read_order(call.services, call.app_id, order))
    )


async def _store_order(call: Call, transaction: Transaction, body: NewOrder) -> WalletOrder:
    """Store an order before the platform is called, so that the key of that call outlives this process."""
    services, app_id = call.services, call.app_id
    product, wallet = product_for(services, app_id, body.product_id)
    if product.type == "subscription":
        raise InvalidParameter("product_id is a subscription")
    if product.price is None:
        raise ConfigInvalid(f"products {body.product_id}: price is not set")
    price = _payable(body.product_id, product.price.in_country(body.country_code))
    return_url, cancel_url = return_urls(services, app_id, wallet.config)
    now = services.clock.now(app_id)
    order = WalletOrder(
        transaction.operation_id, call.caller.user, wallet.config, body.product_id,
        product.model_dump(mode="json"), price.amount, price.currency, return_url, cancel_url, now,
        check_at=soon(now),
    )  # fmt: skip
    async with services.database.transaction() as conn:
        return await wallet_orders.add(conn, app_id, order=order)


def _payable(bp_product_id: str, price: Money) -> Money:
    if rounded(price) != price:
        raise ConfigInvalid(f"products {bp_product_id}: price has more decimals than the platform accepts")
    return price


async def _own_order(call: Call, order_id: str) -> WalletOrder:
    """Return an order of the user. Unknown orders and those of other users get the same error."""
    async with call.services.database.connection() as conn:
        order = await wallet_orders.find(conn, call.app_id, order_id=order_id)
    if order is None or order.uid != call.caller.user:
        raise OrderNotFound(order_id)
    return order


async def _capture_at_platform(call: Call, order: WalletOrder) -> tuple[Order | None, bool]:
    """Capture an order. Return it, and whether the capture was declined."""
    if order.status == COMPLETED:
        return await wallet_order_sync.read_order(call.services, call.app_id, order), False
    account = account_of(call.services, call.app_id, order.config)
    try:
        return await account.capture_order(order.capture_key, order.platform_id), False
    except PayPalRefused as error:
        if error.issue == _CAPTURED or error.issue in _DECLINED:
            read = await wallet_order_sync.read_order(call.services, call.app_id, order)
            return read, error.issue in _DECLINED
        if error.issue == _NOT_APPROVED:
            raise OrderNotApproved("the payer has not approved the order") from None
        if error.not_found:
            raise OrderNotApproved("the order has expired") from None
        raise


async def _with_assets(call: Call, view: WalletOrderView) -> OrderWithAssets:
    now = call.services.clock.now(call.app_id)
    async with call.services.database.connection() as conn:
        assets = await assets_of(conn, call.app_id, call.caller.user, now=now)
    return OrderWithAssets(walletpay_order=view, assets=assets)


def _view(order: WalletOrder, read: Order | None) -> WalletOrderView:
    status = status_of(order, read)
    return WalletOrderView(
        id=order.platform_id,
        status=status,
        amount=order.amount,
        currency=order.currency.lower(),
        approve_link_href=read.approve_url if read is not None and status not in {APPROVED, COMPLETED} else "",
    )
