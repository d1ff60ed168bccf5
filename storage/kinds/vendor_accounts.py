"""Kind `vendor_accounts`: where a vendor is reached and with which key."""

from pydantic import Field, SecretStr

from storage.kinds.base import DAY_S, ConfigKind
from streams.wire.model import Model


class Breaker(Model):
    """When calls to the account are skipped for a while: by the share of failures in a sliding window."""

    failure_ratio: float = Field(default=0.5, gt=0, le=1)
    min_calls: int = Field(default=10, ge=1, le=1_000_000)
    window_s: float = Field(default=30, gt=0, le=DAY_S)
    open_s: float = Field(default=10, gt=0, le=DAY_S)


class VendorAccount(Model):
    platform: str
    """Platform id of the vendor catalog, such as `vendor_b_llm`."""
    base_url: str | None = Field(default=None, pattern=r"^https?://")
    """Absent: the vendor's own; for local engines, those of this server."""
    api_key: SecretStr | None = None
    concurrency: int = Field(default=200, ge=1, le=1_000_000)
    """Calls at once in one process."""
    waiting: int = Field(default=1000, ge=0, le=1_000_000)
    """Further calls that may wait for a place, within the time for their first output."""
    breaker: Breaker = Breaker()


VENDOR_ACCOUNTS = ConfigKind("vendor_accounts", "Vendor account", VendorAccount)
