"""Kind `vendor_accounts`: where a vendor is reached and with which key."""

from pydantic import Field, SecretStr

from storage.kinds.base import ConfigKind
from streams.wire.model import Model


class VendorAccount(Model):
    platform: str
    """Platform id of the vendor catalog, such as `vendor_b_llm`."""
    base_url: str | None = Field(default=None, pattern=r"^https?://")
    """Absent: the vendor's own; for local engines, those of this server."""
    api_key: SecretStr | None = None
    concurrency: int = Field(default=200, ge=1)
    """Calls at once in one process."""


VENDOR_ACCOUNTS = ConfigKind("vendor_accounts", "Vendor account", VendorAccount)
