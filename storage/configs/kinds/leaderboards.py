"""Kind `leaderboards`: boards, their resets, and the rewards of the best users of a period."""

from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field, model_validator

from storage.configs.kinds.base import ConfigKind, Ref
from streams.wire.model import Matches, Model

MAX_SIZE = 10_000_000
MAX_REWARDED = 100_000


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("must be a time zone of the IANA database, such as Europe/Berlin") from None
    return name


class Reset(Model):
    """When a new period begins."""

    every: Literal["day", "week", "month", "never"] = "never"
    """How long a period lasts. `never`: the board has one period, from its creation on."""
    at: Annotated[str, Matches(r"^([01][0-9]|2[0-3]):[0-5][0-9]$", "must be a time such as 04:00")] = "00:00"
    """The local time. A time that the clocks skip means the end of the gap; an ambiguous time means the first
    one."""
    weekday: int = Field(default=1, ge=1, le=7)
    """The day of a week, from 1 (Monday) to 7 (Sunday)."""
    day: int = Field(default=1, ge=1, le=31)
    """The day of a month. In a shorter month, its last day."""
    time_zone: Annotated[str, Field(max_length=64), AfterValidator(_time_zone)] = "UTC"
    """A time zone of the IANA database."""


class Reward(Model):
    from_: int = Field(alias="from", ge=1, le=MAX_REWARDED)
    """The first rank that gets the product."""
    to: int = Field(ge=1, le=MAX_REWARDED)
    """The last rank that gets it."""
    product: Annotated[str, Field(max_length=64), Ref("products")]
    """Name of a config of kind `products`."""


class Leaderboard(Model):
    order: Literal["DESC", "ASC"] = "DESC"
    """`DESC`: the highest score is the best. `ASC`: the lowest one is."""
    size: int = Field(default=100, ge=1, le=MAX_SIZE)
    """The last rank that a query may request."""
    reset: Reset = Reset()
    """When a new period begins. By default, never."""
    rewards: list[Reward] = Field(default_factory=list, max_length=100)
    """The rewards of users by rank at the end of a period."""

    @model_validator(mode="after")
    def _check_rewards(self) -> "Leaderboard":
        if self.rewards and self.reset.every == "never":
            raise ValueError("rewards are only for boards that are reset")
        last = 0
        for reward in sorted(self.rewards, key=lambda reward: reward.from_):
            if reward.to < reward.from_:
                raise ValueError(f"rewards: to must be at least from, which is {reward.from_}")
            if reward.from_ <= last:
                raise ValueError(f"rewards: rank {reward.from_} has two rewards")
            last = reward.to
        return self

    @property
    def descending(self) -> bool:
        return self.order == "DESC"


LEADERBOARDS = ConfigKind("leaderboards", "Leaderboard", Leaderboard)
