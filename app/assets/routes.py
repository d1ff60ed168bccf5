"""Routes of assets and of share groups."""

from dataclasses import replace

from app.assets.assets import list_assets
from app.assets.share_groups import NothingToShare, SharingUnsupported, get_code, join
from app.http.callers.area import Area
from app.http.rows.endpoint import Endpoint
from storage.assets.share_groups import ShareCodeNotFound, ShareGroupFull
from streams.wire.errors import ConfigInvalid, RateLimited

AREA = Area("assets", "Assets", "What users own: purchases, subscriptions, rewards.", s2s=True, scope="assets")
OF_CLIENTS = replace(AREA, s2s=False)

ASSET_ROUTES = [
    Endpoint("GET", "/bp/asset", list_assets, AREA),
    Endpoint(
        "POST",
        "/bp/asset/share_group/code",
        get_code,
        OF_CLIENTS,
        errors=(NothingToShare, SharingUnsupported, ShareGroupFull, ConfigInvalid),
    ),
    Endpoint(
        "POST",
        "/bp/asset/share_group/join",
        join,
        OF_CLIENTS,
        errors=(ShareCodeNotFound, ShareGroupFull, ConfigInvalid, RateLimited),
    ),
]
