"""A server that receives webhooks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from streams.wire.codec import loads
from tests.waiting import until


@dataclass
class Receiver:
    url: str = ""
    status: int = 200
    bodies: list[bytes] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [loads(body) for body in self.bodies]

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    async def wait(self, count: int) -> None:
        await until(lambda: len(self.bodies) >= count)

    async def receive(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.read())
        self.signatures.append(request.headers.get("Stripe-Signature", ""))
        return web.Response(status=self.status)


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.add_routes([web.post("/webhook", receiver.receive)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/webhook"
        yield receiver
    finally:
        await runner.cleanup()
