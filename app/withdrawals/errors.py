"""Errors of withdrawals, by category. After the response, an error is the `reason` of a failure."""

from streams.wire.errors import Conflict, ItemNotFound, ServiceError, listed


class AccountInvalid(ServiceError):
    """The user has no account that can be paid, such as a verified email address."""

    error_type = "withdraw.account_invalid"
    status = 400


class LimitExceeded(ServiceError):
    """The amount, or the sum of the user's withdrawals of this day (UTC), is above the limit of the config."""

    error_type = "withdraw.limit_exceeded"
    status = 400


class UserRestricted(ServiceError):
    """The account of the user is about to be deactivated."""

    error_type = "withdraw.user_restricted"
    status = 400


class WithdrawIdTaken(Conflict):
    """The app has used this `withdraw_id` for another user or another request."""

    def __init__(self, withdraw_id: str) -> None:
        super().__init__(f"withdraw_id {listed([withdraw_id])} is that of another withdrawal")


class WithdrawalNotFound(ItemNotFound):
    """The user has no such withdrawal, or none at all."""

    def __init__(self, withdraw_id: str | None) -> None:
        which = "the user has no withdrawal"
        super().__init__(which if withdraw_id is None else f"{which} with the withdraw_id {listed([withdraw_id])}")


BALANCE_INSUFFICIENT = "withdraw.balance_insufficient"
PLATFORM_REJECTED = "withdraw.platform_rejected"
PLATFORM_UNAVAILABLE = "withdraw.platform_unavailable"

_CATEGORIES = {
    "RECEIVER_UNREGISTERED": AccountInvalid.error_type,
    "RECEIVER_UNCONFIRMED": AccountInvalid.error_type,
    "RECEIVER_ACCOUNT_LOCKED": AccountInvalid.error_type,
    "RECEIVER_COUNTRY_NOT_ALLOWED": AccountInvalid.error_type,
    "PENDING_RECIPIENT_NON_HOLDING_CURRENCY_PAYMENT_PREFERENCE": AccountInvalid.error_type,
    "SELF_PAY_NOT_ALLOWED": AccountInvalid.error_type,
    "INSUFFICIENT_FUNDS": BALANCE_INSUFFICIENT,
    "TRANSACTION_LIMIT_EXCEEDED": LimitExceeded.error_type,
    "REGULATORY_BLOCKED": UserRestricted.error_type,
}
"""The categories of the platform's errors. All others are `withdraw.platform_rejected`."""


def reason_of(error: str) -> str:
    """Return the reason of a failure for an error of the platform."""
    category = _CATEGORIES.get(error, PLATFORM_REJECTED)
    return f"{category}: {error}" if error else category
