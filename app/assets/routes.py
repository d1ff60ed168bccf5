"""Routes of assets."""

from app.assets.assets import list_assets
from app.http.area import Area
from app.http.endpoint import Endpoint

AREA = Area("assets", "Assets", "What users own: purchases, subscriptions, rewards.", s2s=True, scope="assets")

ASSET_ROUTES = [Endpoint("GET", "/bp/asset", list_assets, AREA)]
