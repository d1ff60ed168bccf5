"""What protects the endpoints under `/dev` from other websites that a developer visits.

They need no token, and show codes and sessions. So no page of another origin may read them, and no page that has
reached the server under a name of its own (DNS rebinding), for which the browser sees one origin.
"""

import ipaddress
from urllib.parse import urlsplit

from aiohttp import web

from app.http.errors import HostUnknown
from app.settings import Settings
from streams.wire.errors import listed


def check_host(request: web.Request, settings: Settings) -> None:
    """Raise `HostUnknown` if the request names a host that somebody else may have led to this server."""
    host = request.headers.get("Host", "")
    try:
        name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:
        name = host
    if not (_is_own(name) or name == urlsplit(settings.public_url).hostname):
        raise HostUnknown(
            f"the host {listed([name])} is not this server's: use localhost, or set PARLEY_PUBLIC_URL to its URL"
        )


def _is_own(name: str) -> bool:
    """Return whether nobody else can decide where `name` leads: addresses, `localhost`, and names without a dot."""
    if "." not in name and ":" not in name:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.endswith(".localhost")
    return True
