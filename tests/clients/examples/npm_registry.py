"""An npm registry at a real socket, which has one packed package."""

import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from streams.wire.codec import loads


@asynccontextmanager
async def npm_registry(packed: Path) -> AsyncIterator[str]:
    with tarfile.open(packed) as archive:
        member = archive.extractfile("package/package.json")
        assert member is not None
        manifest = loads(member.read())
    name, version = manifest["name"], manifest["version"]

    async def describe(request: web.Request) -> web.Response:
        tarball = f"{request.url.origin()}/{packed.name}"
        versions = {version: {**manifest, "dist": {"tarball": tarball}}}
        return web.json_response({"name": name, "dist-tags": {"latest": version}, "versions": versions})

    async def deliver(_: web.Request) -> web.FileResponse:
        return web.FileResponse(packed)

    app = web.Application()
    app.router.add_get(f"/{name}", describe)
    app.router.add_get(f"/{packed.name}", deliver)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
