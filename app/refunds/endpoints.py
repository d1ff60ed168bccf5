"""Admin API: refund a payment of a user, or a period of a subscription."""

from pydantic import Field

from app.admin.area import FOR_EDITORS
from app.admin.reasons import origin_with_reason
from app.admin.users.orders import OrderNotFound, OrderPath
from app.admin.users.users import USER_ERRORS, user_of
from app.http.rows import idempotency
from app.http.rows.docs import Docs
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body, Path, Query
from app.refunds.errors import NothingToRefund, OtherRefund, PaymentNotFound, RefundRefused
from app.refunds.making import make_refund
from app.refunds.payments import Paid, left_of, read_payment
from storage.accounts import users
from storage.assets import ledger
from storage.configs.kinds.cardpay import CARDPAY
from storage.operators import audit
from storage.operators.audit import Subject
from storage.payments import operator_refunds, order_list
from storage.payments.operator_refunds import OperatorRefund, State
from storage.payments.order_list import ListedOrder
from streams.wire.codec import rfc3339
from streams.wire.errors import ConfigInvalid, InvalidParameter
from streams.wire.ids import new_id
from streams.wire.model import Model
from vendors.errors import VendorError
from vendors.payments.stripe.objects import platform_amount


class RefundQuery(Model):
    payment: str | None = Field(default=None, max_length=128)
    """The payment of a subscription: the platform's id, as in the key of its ledger entry. Absent: the last one."""


class RefundRequest(Model):
    amount: int | None = Field(default=None, gt=0, lt=2**63)
    """In minor units of the order's currency. Absent: all that is left."""
    payment: str | None = Field(default=None, max_length=128)
    """The payment of a subscription: the platform's id, as in the key of its ledger entry. Absent: the last one."""


class Refundable(Model):
    """What was paid for the order, and how much of it can be refunded."""

    payment_id: str
    """The platform's id of the payment: the intent of a card, or the capture or sale of the wallet."""
    sale_id: str | None = None
    """The payment of a subscription, as `payment` of the refund names it."""
    paid: int
    """In minor units of the currency."""
    left: int
    """What can be refunded. What is disputed, or is being refunded, cannot."""
    currency: str
    subscription: bool
    """Whether it is a payment of a subscription. Its refund does not cancel the subscription."""


class RefundView(Model):
    """The refund and its state."""

    refund_id: str
    """The id of this server."""
    payment_id: str
    platform_refund_id: str | None = None
    """The platform's id, once it has accepted the refund."""
    amount: int
    """In minor units of the currency."""
    currency: str
    state: State
    """`made`: the money is on its way, and what it takes back is applied. `pending`: the platform has not
    answered, and a job repeats the call. `accepted`: the platform makes it later. `failed`: it was refused."""
    problem: str
    """Why it has failed, or why the last call of the platform has failed."""
    created_at: str


async def read_refundable(call: Call, path: Path[OrderPath], query: Query[RefundQuery]) -> Refundable:
    """Read how much of an order can be refunded.

    Of a subscription, this is one of its payments.

    The payment is read back from its platform first.
    """
    order = await _order_of(call, path)
    paid = await read_payment(call.services, order, payment=query.payment)
    async with call.services.database.connection() as conn:
        left = await left_of(conn, order, paid)
    return Refundable(
        payment_id=paid.payment_id,
        sale_id=paid.sale_id,
        paid=paid.money.amount,
        left=left.amount,
        currency=left.currency,
        subscription=order.amount is None,
    )


async def refund_order(call: Call, path: Path[OrderPath], body: Body[RefundRequest]) -> RefundView:
    """Refund an order wholly or partly.

    Of a subscription, this is one of its payments.

    A refund of all that was paid takes back what the payment has granted. A part takes nothing. A subscription is
    not cancelled. The headers `X-Parley-Reason` and `Idempotency-Key` are required: a repeated request with the
    same key never refunds twice, however late it is. It gets the state that the refund has by then.
    """
    origin_with_reason(call)
    key = idempotency.required_key(call.request)
    order = await _order_of(call, path)
    async with call.services.database.connection() as conn:
        refund = await operator_refunds.of_request(conn, path.app, order_row=order.row_id, key=key)
    if refund is None:
        paid = await read_payment(call.services, order, payment=body.payment)
        refund = await _store(call, order, paid, body, key=key)
    if body.amount not in {None, refund.amount} or body.payment not in {None, refund.payment_id, refund.sale_id}:
        raise OtherRefund
    problem = ""
    try:
        refund = await make_refund(call.services, refund)
    except VendorError as error:  # The job repeats the call with the same key.
        problem = error.what
        async with call.services.database.connection() as conn:
            refund = await operator_refunds.get(conn, path.app, row_id=refund.row_id)
    if refund.state == "failed":
        raise RefundRefused(refund.problem)
    return _view(refund, problem)


async def _order_of(call: Call, path: OrderPath) -> ListedOrder:
    async with call.services.database.connection() as conn:
        await user_of(call, conn, path, find=users.find_any)
        order = await order_list.find(conn, path.app, path.user_id, order=path.order)
    if order is None:
        raise OrderNotFound(path.order)
    return order


async def _store(call: Call, order: ListedOrder, paid: Paid, body: RefundRequest, *, key: str) -> OperatorRefund:
    """Store a refund of what is left. Locks the user, so that two refunds never take the same money."""
    async with call.services.database.transaction() as conn:
        await ledger.lock(conn, order.app_id, order.uid)
        earlier = await operator_refunds.of_request(conn, order.app_id, order_row=order.row_id, key=key)
        if earlier is not None:
            return earlier
        left = await left_of(conn, order, paid)
        if not left.amount:
            raise NothingToRefund(f"nothing of {paid.money} is left to refund")
        amount = left.amount if body.amount is None else body.amount
        if amount > left.amount:
            raise InvalidParameter(f"amount must be at most {left.amount}, which is what is left of the payment")
        refund = OperatorRefund(
            new_id(), order.app_id, order.uid, order.platform, order.config, order.row_id, order.platform_id or "",
            paid.payment_id, paid.sale_id, amount, left.currency, key, "pending", None, "",
            call.services.clock.now(order.app_id),
        )  # fmt: skip
        _check_expressible(refund)
        await operator_refunds.add(conn, refund)
        await audit.record_change(
            conn, call.origin,
            action="order.refund", subject=Subject(order.app_id, "order", order.row_id),
            after={"user_id": order.uid, "payment_id": paid.payment_id, "amount": str(refund.money)},
        )  # fmt: skip
    return refund


def _check_expressible(refund: OperatorRefund) -> None:
    if refund.platform != CARDPAY.name:
        return
    try:
        platform_amount(refund.money)
    except ValueError as error:
        raise InvalidParameter(f"amount {error}") from None


def _view(refund: OperatorRefund, problem: str) -> RefundView:
    return RefundView(
        refund_id=refund.row_id,
        payment_id=refund.payment_id,
        platform_refund_id=refund.refund_id,
        amount=refund.amount,
        currency=refund.currency,
        state=refund.state,
        problem=problem,
        created_at=rfc3339(refund.created_at),
    )


_PATH = "/admin/api/users/{app}/{user_id}/orders/{order}/refund"
_ERRORS = (*USER_ERRORS, OrderNotFound, PaymentNotFound, NothingToRefund, ConfigInvalid, VendorError)

_REFUND = Docs(headers={idempotency.HEADER: "1 to 255 visible ASCII characters, which name the refund."})

REFUND_ROUTES = [
    Endpoint("GET", _PATH, read_refundable, FOR_EDITORS, errors=_ERRORS),
    Endpoint("POST", _PATH, refund_order, FOR_EDITORS, errors=(*_ERRORS, OtherRefund, RefundRefused), docs=_REFUND),
]
