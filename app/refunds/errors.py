"""Why a payment is not refunded."""

from streams.wire.errors import Conflict, ItemNotFound, listed


class NothingToRefund(Conflict):
    """Nothing of the payment is left to refund, or it was never paid."""


class RefundRefused(Conflict):
    """The platform has refused the refund, or has failed to make it."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"the platform has refused the refund: {problem}", extra={"code": problem})


class PaymentNotFound(ItemNotFound):
    """The subscription has no payment with this id."""

    def __init__(self, payment: str) -> None:
        super().__init__(f"payment {listed([payment])} does not exist")


class OtherRefund(Conflict):
    """The `Idempotency-Key` was used for a refund of another amount."""

    def __init__(self) -> None:
        super().__init__("Idempotency-Key was used for a refund of another amount")
