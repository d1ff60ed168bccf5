"""URLs of Valkey: of one server, of a group of servers that Sentinel watches, or of a cluster."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

Topology = Literal["single", "cluster", "sentinel"]

SCHEMES = ("redis", "rediss", "unix", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel")

_DEFAULT_PORT = 6379
_DEFAULT_SENTINEL_PORT = 26379
_OF_SENTINELS = "sentinel_"
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]+\]")
_AFTER_HOSTS = re.compile(r"[/?#]")


@dataclass(frozen=True, slots=True)
class Addresses:
    """The servers of a URL: nodes of a cluster, or Sentinels. `options` are those of redis-py's connections.

    `service` is the Sentinels' name of the group of servers, `sentinel_options` are those of connections to them.
    """

    topology: Topology
    hosts: Sequence[tuple[str, int]]
    options: Mapping[str, Any]
    service: str = ""
    sentinel_options: Mapping[str, Any] | None = None


def topology_of(url: str) -> Topology:
    """Return which servers a URL is for, by its scheme."""
    _, _, kind = url.partition("://")[0].partition("+")
    return "cluster" if kind == "cluster" else "sentinel" if kind == "sentinel" else "single"


def split_hosts(url: str) -> SplitResult:
    """Split a URL that may name several hosts. `urlsplit` refuses an IPv6 address after another host."""
    parts = urlsplit(_IPV6.sub("ipv6", url))
    return parts._replace(netloc=_AFTER_HOSTS.split(url.partition("://")[2], maxsplit=1)[0])


def parse(url: str) -> Addresses:
    """Parse `redis+cluster://host:port,host:port` or `redis+sentinel://host:port,host:port/name`.

    User, password and options of redis-py apply to the servers, options that begin with `sentinel_` to the
    Sentinels. Raises `ValueError` or `TypeError`, as redis-py does.
    """
    topology, parts = topology_of(url), split_hosts(url)
    default_port = _DEFAULT_SENTINEL_PORT if topology == "sentinel" else _DEFAULT_PORT
    access, at, hosts = parts.netloc.rpartition("@")
    query = parse_qsl(parts.query)
    options = _options(parts, access + at, [(name, value) for name, value in query if not _is_of_sentinels(name)])
    if topology == "cluster":
        if parts.path.strip("/") or options.pop("db", 0):
            raise ValueError("a cluster has only the database 0")
        return Addresses(topology, _hosts(hosts, default_port), options)
    if not (service := unquote(parts.path.strip("/"))):
        raise ValueError("the name of the group is missing: redis+sentinel://host:26379/NAME")
    of_sentinels = [(name.removeprefix(_OF_SENTINELS), value) for name, value in query if _is_of_sentinels(name)]
    return Addresses(topology, _hosts(hosts, default_port), options, service, _options(parts, "", of_sentinels))


def location(url: str) -> str:
    """Describe the target of `url`, for operators. The password is left out."""
    parts = split_hosts(url)
    options = dict(parse_qsl(parts.query))
    number = options.get("db", "")
    if topology_of(url) != "single":
        hosts = parts.netloc.rpartition("@")[2]
        kind = (
            "the cluster" if topology_of(url) == "cluster" else f"{unquote(parts.path.strip('/'))} of the Sentinels"
        )
        place = f"{kind} at {hosts.replace(',', ', ')}"
    elif parts.scheme == "unix":
        place = unquote(parts.path)
    else:
        place = f"{parts.hostname or 'localhost'}:{parts.port or _DEFAULT_PORT}"
        number = number or parts.path.strip("/")
    user = unquote(parts.netloc.rpartition("@")[0].partition(":")[0]) or options.get("username", "")
    return place + (f", database {number}" if number else "") + (f", user {user}" if user else "")


def _is_of_sentinels(name: str) -> bool:
    return name.startswith(_OF_SENTINELS)


def _options(parts: SplitResult, access: str, query: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return what redis-py makes of a URL, apart from the server."""
    from redis.asyncio.connection import parse_url  # noqa: PLC0415 - slow to import, and settings need no options

    scheme = parts.scheme.partition("+")[0]
    options = dict(parse_url(f"{scheme}://{access}localhost?{urlencode(query)}"))
    return {name: value for name, value in options.items() if name not in {"host", "port"}}


def _hosts(hosts: str, default_port: int) -> list[tuple[str, int]]:
    places = [urlsplit(f"//{host}") for host in hosts.split(",")]
    return [(place.hostname or "localhost", place.port or default_port) for place in places]
