"""Kind `iplocation`: the database of IP locations."""

from ipaddress import ip_network
from typing import Annotated

from pydantic import AfterValidator, Field

from storage.configs.kinds.base import ConfigKind
from streams.wire.model import Model


def _network(value: str) -> str:
    try:
        return str(ip_network(value))
    except ValueError:
        raise ValueError("must be an IP address or a network such as 10.0.0.0/8") from None


class IpLocation(Model):
    database: str | None = Field(default=None, min_length=1, max_length=4096)
    """Path of a file of IP2Location (BIN) or of MaxMind (mmdb) on each server, relative to the folder in which it
    runs. A file that changes is loaded within seconds."""
    trusted_proxies: list[Annotated[str, Field(max_length=64), AfterValidator(_network)]] = Field(
        default_factory=list, max_length=256
    )
    """Addresses and networks (CIDR) of proxies and app servers whose `X-Forwarded-For` is trusted. Default: those
    of `PARLEY_TRUSTED_PROXIES`. Without any, the first valid address of the header counts, which clients can
    choose."""


IPLOCATION = ConfigKind("iplocation", "IP location", IpLocation, singleton=True)
