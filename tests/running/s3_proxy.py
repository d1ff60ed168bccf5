"""A proxy in front of an S3 server that refuses some requests, or cuts off all."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from aiohttp import ClientSession, web

_KEPT = {"etag", "content-type", "content-range", "last-modified"}


def code(status: int, name: str) -> Callable[[web.Request], web.Response]:
    """Return a function that refuses all requests with an error of S3."""
    return lambda _: web.Response(status=status, text=f"<Error><Code>{name}</Code></Error>")


@dataclass
class S3Proxy:
    target: str
    refuse: Callable[[web.Request], web.Response | None] = lambda _: None
    """Returns the answer to a request that is refused."""
    asked: list[str] = field(default_factory=list)
    """The method, path and query of each request."""
    url: str = ""
    is_cut: bool = False
    """Whether connections are closed without an answer."""

    async def forward(self, request: web.Request) -> web.Response:
        if self.is_cut:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        self.asked.append(f"{request.method} {request.path_qs}")
        body, headers = await request.read(), {**request.headers, "Host": urlsplit(self.target).netloc}
        if (refused := self.refuse(request)) is not None:
            return refused
        async with (
            ClientSession(auto_decompress=False) as http,
            http.request(request.method, f"{self.target}{request.raw_path}", data=body, headers=headers) as answer,
        ):
            kept = {name: text for name, text in answer.headers.items() if name.lower() in _KEPT}
            if request.method == "HEAD":
                kept["Content-Length"] = answer.headers["Content-Length"]
            return web.Response(status=answer.status, body=await answer.read(), headers=kept)


@asynccontextmanager
async def s3_proxy(
    target: str, refuse: Callable[[web.Request], web.Response | None] = lambda _: None
) -> AsyncIterator[S3Proxy]:
    proxy = S3Proxy(target, refuse)
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", proxy.forward)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        proxy.url = "http://{}:{}".format(*runner.addresses[0])
        yield proxy
    finally:
        await runner.cleanup()
