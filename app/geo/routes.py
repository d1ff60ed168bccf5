"""Routes of IP locations."""

from app.geo.locations import locate
from app.http.callers.area import Area
from app.http.callers.caller import Access
from app.http.rows.endpoint import Endpoint
from streams.wire.errors import BackendUnavailable, ConfigInvalid, InvalidParameter, RateLimited

AREA = Area(
    "geo",
    "IP location",
    "Where IP addresses are.",
    access=Access.SIGNED,
    s2s=True,
    scope="geo",
    unknown_user_error=None,
)

GEO_ROUTES = [
    Endpoint(
        "GET",
        "/bp/iplocation/ipv4",
        locate,
        AREA,
        s2s="/bp/server/user/{user_id}/iplocation/ipv4",
        errors=(InvalidParameter, ConfigInvalid, BackendUnavailable, RateLimited),
    ),
]
"""The path says `ipv4`, and IPv6 addresses are located too."""
