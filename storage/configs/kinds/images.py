"""Kind `images`: a strategy for generating images, and the account of its host."""

from typing import Annotated, Literal

from pydantic import Field

from storage.configs.kinds.base import DAY_S, ConfigKind, Ref
from storage.configs.kinds.quota import Quota
from streams.wire.model import Model

ProcessMode = Literal["relax", "fast", "turbo", "mixed"]


class Images(Model):
    account: Annotated[str, Field(max_length=255), Ref("vendor_accounts", offers="images")]
    """Name of a config of kind `vendor_accounts`, whose platform is `image_host` or `local_images`."""
    process_mode: ProcessMode | None = None
    """The speed of the host if a request does not specify it. Default: the host decides."""
    quota: Quota | None = None
    """The assets of the user that each task uses. Default: none."""
    per_minute: int | None = Field(default=None, ge=1, le=1_000_000)
    """Maximum number of tasks of a user per minute with this strategy. The rate `image` in `limits.rates`, which
    counts the tasks of all strategies, also applies."""
    at_once: int = Field(default=3, ge=1, le=1000)
    """Maximum number of unfinished tasks of a user, over all strategies."""
    lost_after_s: int = Field(default=1800, ge=60, le=DAY_S)
    """Seconds after which a task that its host has not finished counts as failed. `relax` may need hours."""


IMAGES = ConfigKind("images", "Images", Images)
