"""Errors of leaderboards (§7)."""

from streams.wire.errors import ServiceError


class InReward(ServiceError):
    """The board accepts no scores while rewards are granted, and for 10 minutes after that.

    `Retry-After` says when it may accept them again.
    """

    error_type = "leaderboard.in_reward"
    status = 400
    retryable = True

    def __init__(self, *, retry_after_s: float) -> None:
        super().__init__("rewards of the last period are being granted", retry_after_s=retry_after_s)
