"""The routes of the drawing engine, whose packages may be missing."""

from aiohttp import web

from vendors.local.engines.faults import engine_missing


def drawing_routes(reason: str | None) -> list[web.RouteDef]:
    """Return the routes. `reason` says why the engine is missing."""
    if reason is None:
        from vendors.local.pictures.gateway import PictureGateway  # noqa: PLC0415 - it imports the packages

        return PictureGateway().routes()

    async def refuse(request: web.Request) -> web.StreamResponse:
        raise engine_missing("patterns", reason)

    return [web.post("/v1/mj/v2/{type}", refuse)]
