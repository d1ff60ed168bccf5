"""The endpoint that lists the assets of a user (§2.7)."""

from datetime import datetime

from app.assets.view import AssetView, asset_views
from app.http.rows.endpoint import Call
from storage.assets import assets, share_groups
from storage.postgres.database import Connection
from streams.wire.model import Model


class AssetList(Model):
    """The assets of the user."""

    assets: list[AssetView]


async def list_assets(call: Call) -> AssetList:
    """List the assets of the user.

    Subscriptions that have ended are listed too, with `valid_seconds` 0. Assets that others share with the user are
    listed until they end.
    """
    now = call.services.clock.now(call.app_id)
    async with call.services.database.connection() as conn:
        return AssetList(assets=await assets_of(conn, call.app_id, call.caller.user, now=now))


async def assets_of(conn: Connection, app_id: str, uid: str, *, now: datetime) -> list[AssetView]:
    """Return all assets of a user for a response: the user's own, and those that others share."""
    owned = await assets.of_user(conn, app_id, uid)
    shared = await share_groups.assets_of_member(conn, app_id, uid, now=now)
    return asset_views([*owned, *shared], now=now)
