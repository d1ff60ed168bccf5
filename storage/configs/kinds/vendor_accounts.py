"""Kind `vendor_accounts`: the address of a vendor's API, the key, and limits on its use."""

from pydantic import Field, SecretStr

from storage.configs.kinds.base import DAY_S, ConfigKind
from streams.wire.model import HttpUrl, Model


class Breaker(Model):
    """A circuit breaker: after too many failures, calls to the account are skipped for a while."""

    failure_ratio: float = Field(default=0.5, gt=0, le=1)
    """Share of failed calls in the window at which the breaker opens."""
    min_calls: int = Field(default=10, ge=1, le=1_000_000)
    """Number of calls in the window below which the breaker does not open."""
    window_s: float = Field(default=30, ge=0.01, le=DAY_S)
    """Length of the sliding window in seconds."""
    open_s: float = Field(default=10, ge=0.01, le=DAY_S)
    """Seconds for which calls are skipped before one call is tried again."""


class CallLimits(Model):
    """Limits on the calls to an account, for every kind that describes one."""

    concurrency: int = Field(default=200, ge=1, le=1_000_000)
    """Maximum number of concurrent calls per process."""
    waiting: int = Field(default=1000, ge=0, le=1_000_000)
    """Maximum number of further calls that wait for a free slot. Their timeout for the first output includes the
    wait."""
    breaker: Breaker = Breaker()
    """When calls to the account are skipped."""


class VendorAccount(CallLimits):
    platform: str
    """Platform id from the vendor catalog, such as `vendor_b_llm`, or one of its aliases, such as `openai`. The id
    is stored. `GET /admin/api/platforms` lists all platforms."""
    base_url: HttpUrl | None = None
    """Base URL of the API. Default: the vendor's public URL, or this server's own engines for local platforms."""
    api_key: SecretStr | None = None
    """The vendor's key. Local platforms need none."""
    stream_options: bool = True
    """Whether language models with OpenAI's protocol are asked for their usage. A server that refuses this is asked
    without it, which takes one more call after each start of a process."""


VENDOR_ACCOUNTS = ConfigKind("vendor_accounts", "Vendor account", VendorAccount, addresses=("platform", "base_url"))
