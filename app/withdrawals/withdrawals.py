"""Start and read withdrawals (§4.13)."""

from datetime import datetime, time
from decimal import Context, Decimal, Inexact
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, WithJsonSchema

from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body, Query
from app.http.rows.transactions import Transaction
from app.withdrawals.errors import (
    AccountInvalid,
    LimitExceeded,
    UserRestricted,
    WithdrawalNotFound,
    WithdrawIdTaken,
)
from app.withdrawals.payouts import CHECK_AGAIN
from storage.accounts import emails, users
from storage.configs.kinds.payouts import PAYOUTS, Payouts
from storage.postgres.database import Connection, on_conflict
from storage.withdrawals import withdrawals
from storage.withdrawals.withdrawals import Withdrawal
from streams.wire.codec import rfc3339
from streams.wire.errors import InvalidParameter
from streams.wire.ids import new_id
from streams.wire.model import DecimalNumber, Matches, Model
from streams.wire.money import Money
from vendors.payments.paypal.fields import decimals_of, rounded

CONFIG = "Default"
"""The config of kind `payouts` that all withdrawals use, because requests name none."""
_IdText = Annotated[str, Matches(r"^[ -~]{1,64}$", "must be 1 to 64 printable ASCII characters")]


def _validate_time(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("must be a time in ISO 8601") from None
    return text


_MOST = 10**9
_PLACES = 4
"""The decimals of the currencies that have the most."""


def _validate_places(number: Decimal) -> Decimal:
    """Limit the decimals before the currency of the config is known. Trailing zeros do not count."""
    try:
        return number.quantize(Decimal(1).scaleb(-_PLACES), context=Context(traps=[Inexact]))
    except Inexact:
        raise ValueError(f"must have at most {_PLACES} decimals") from None


CashNum = Annotated[
    DecimalNumber,
    Field(gt=0, le=_MOST),
    AfterValidator(_validate_places),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": _MOST}),
]


class NewWithdrawal(Model):
    exact_numbers: ClassVar[bool] = True
    cash_num: CashNum
    """The amount, with at most two decimals, in the currency of the config."""
    withdraw_id: _IdText
    """An id that the app has not used before. A repeat with the same body returns the same withdrawal."""
    cuid: str | None = Field(default=None, max_length=128)
    timezone: int | None = Field(default=None, ge=-86_400, le=86_400)
    desc: str | None = Field(default=None, max_length=1000)
    """A note for the receiver."""
    app_platform: str | None = Field(default=None, max_length=64)
    start_time: Annotated[str, Field(max_length=64), AfterValidator(_validate_time)]
    """When the user started it, in ISO 8601."""


class WithdrawalQuery(Model):
    withdraw_id: str | None = Field(default=None, max_length=64)
    """The id of the app or of this server. Default: the newest withdrawal."""


class WithdrawalView(Model):
    cash_num: float
    created_time: str
    updated_time: str
    merchant_id: str
    platform: str
    """The platform that pays, as the config names it, such as `paypal`."""
    reason: str
    """Why it failed: an error type such as `withdraw.account_invalid`, and the platform's own name of the reason.
    While it is in progress: `withdraw.platform_unavailable` if the last call to the platform failed."""
    status: str
    """`WITHDRAW_START` while it is in progress, then `WITHDRAW_SUCCESS` or `WITHDRAW_FAILED`."""
    user_id: str
    withdraw_id: str
    """The id of this server."""
    withdraw_time: str
    """When it was paid; the zero time until then."""


class WithdrawalReply(Model):
    """The withdrawal."""

    withdraw: WithdrawalView


async def create(call: Call, transaction: Transaction, body: Body[NewWithdrawal]) -> WithdrawalReply:
    """Start a withdrawal.

    It is paid to the verified email address of the user. The result comes later: query it. A repeat with the same
    `withdraw_id` is safe, even without an `Idempotency-Key`.
    """
    config = call.services.configs.required(PAYOUTS, call.app_id, CONFIG).value
    amount = _amount(body.cash_num, config)
    async with transaction.begin() as conn:
        found = await _find_or_start(call, conn, body, config=config, amount=amount)
        return transaction.answer(WithdrawalReply(withdraw=_view(found)))


async def query(call: Call, query: Query[WithdrawalQuery]) -> WithdrawalReply:
    """Read a withdrawal of the user."""
    async with call.services.database.connection() as conn:
        found = await withdrawals.find_of_user(conn, call.app_id, call.caller.user, any_id=query.withdraw_id)
    if found is None:
        raise WithdrawalNotFound(query.withdraw_id)
    return WithdrawalReply(withdraw=_view(found))


def _amount(cash_num: Decimal, config: Payouts) -> Money:
    try:
        amount = Money.parse(f"{cash_num.normalize():f}", config.currency)
    except ValueError as error:
        raise InvalidParameter(f"cash_num {error}") from None
    if rounded(amount) != amount:
        raise InvalidParameter(f"cash_num must have at most {decimals_of(config.currency)} decimals")
    return amount


async def _find_or_start(
    call: Call, conn: Connection, body: NewWithdrawal, *, config: Payouts, amount: Money
) -> Withdrawal:
    """Return the withdrawal with the app's `withdraw_id`. Start it unless it exists."""
    app_id, uid = call.app_id, call.caller.user
    user = await users.lock(conn, app_id, uid)  # Deactivation takes the same lock.
    request = body.model_dump(mode="json", exclude_none=True)
    found = await withdrawals.find_by_app_id(conn, app_id, app_withdraw_id=body.withdraw_id)
    if found is not None:
        if (found.uid, found.request) != (uid, request):
            raise WithdrawIdTaken(body.withdraw_id)
        return found
    if user is None or user.status != "active":
        raise UserRestricted("the account of the user is about to be deactivated")
    now = call.services.clock.now(app_id)
    await _check_limits(conn, app_id, uid, config=config, amount=amount, now=now)
    addresses = await emails.find(conn, app_id, uid)
    if not addresses.verified:
        raise AccountInvalid("the user has no proven email address")
    new = Withdrawal(
        withdrawal_id=new_id(),
        app_id=app_id,
        uid=uid,
        app_withdraw_id=body.withdraw_id,
        request=request,
        config=CONFIG,
        platform=config.platform,
        merchant_id=config.merchant_id,
        amount=amount.amount,
        currency=amount.currency,
        receiver=addresses.current,
        created_at=now,
        updated_at=now,
        check_at=now + CHECK_AGAIN,
    )
    with on_conflict("withdrawals_by_app_id", lambda: WithdrawIdTaken(body.withdraw_id)):
        await withdrawals.start(conn, new)
    return new


async def _check_limits(
    conn: Connection, app_id: str, uid: str, *, config: Payouts, amount: Money, now: datetime
) -> None:
    """Raise `LimitExceeded` for an amount above the limits. `conn` has locked the user."""
    limits = config.limits
    if limits.per_call is not None and amount.amount > limits.per_call:
        raise LimitExceeded(f"cash_num must be at most {Money(limits.per_call, amount.currency).decimal}")
    if limits.per_day is None:
        return
    midnight = datetime.combine(now.date(), time(), tzinfo=now.tzinfo)
    reserved = await withdrawals.reserved(conn, app_id, uid, config=CONFIG, since=midnight)
    if reserved + amount.amount > limits.per_day:
        left = Money(max(0, limits.per_day - reserved), amount.currency)
        raise LimitExceeded(f"the user may withdraw {left} more on this day (UTC)")


def _view(found: Withdrawal) -> WithdrawalView:
    return WithdrawalView(
        cash_num=float(found.money.decimal),
        created_time=rfc3339(found.created_at),
        updated_time=rfc3339(found.updated_at),
        merchant_id=found.merchant_id,
        platform=found.platform,
        reason=found.reason,
        status=f"WITHDRAW_{found.status}",
        user_id=found.uid,
        withdraw_id=found.withdrawal_id,
        withdraw_time=rfc3339(found.paid_at),
    )
