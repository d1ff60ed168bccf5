"""The endpoint that lists the assets of a user (§2.7)."""

from app.assets.view import AssetView, asset_views
from app.http.endpoint import Call
from storage import assets
from streams.wire.model import Model


class AssetList(Model):
    assets: list[AssetView]


async def list_assets(call: Call) -> AssetList:
    """List the assets of the user.

    Subscriptions that have ended are listed too, with `valid_seconds` 0.
    """
    async with call.services.database.connection() as conn:
        owned = await assets.of_user(conn, call.app_id, call.caller.user)
    return AssetList(assets=asset_views(owned, now=call.services.clock.now(call.app_id)))
