"""Kind `share_groups`: how the owners of an asset may share it. The name of a config is that of the asset."""

from typing import Literal

from pydantic import Field

from storage.configs.kinds.base import ConfigKind
from streams.wire.model import Model

MAX_SHARE_QUOTA = 1000


class ShareGroups(Model):
    quota: int = Field(ge=0, le=MAX_SHARE_QUOTA)
    """The number of users who may join the group of an owner. `share_quota` of a product overrides it."""
    platforms: list[Literal["cardpay", "walletpay"]] = Field(min_length=1, max_length=2)
    """The payment platforms whose subscriptions may be shared."""


SHARE_GROUPS = ConfigKind("share_groups", "Share group", ShareGroups)
