"""Three nodes on three loopback addresses, which answer as Parley's do and count what they receive."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import ClientResponse, ClientSession, web

ADDRESSES = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
STREAM, READ, CALL = "/bp/ai/conversation", "/bp/asset", "/bp/asset/verify"
_ASK_TIMES = 9


@dataclass
class Node:
    """A node. `status` is what it answers to requests; 0: it closes the connection without an answer."""

    name: str
    address: str = ""
    ready: bool = True
    status: int = 200
    received: Counter[str] = field(default_factory=Counter)
    event: asyncio.Event = field(default_factory=asyncio.Event)
    """A stream sends its second event, which is its last, when this is set."""
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/readyz", self._readyz)
        app.router.add_post(STREAM, self._stream)
        app.router.add_get(READ, self._answer)
        app.router.add_post(CALL, self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.name, 0)
        await site.start()
        self.address = "{}:{}".format(*self._runner.addresses[0])

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _readyz(self, _request: web.Request) -> web.Response:
        return web.Response(status=200 if self.ready else 503)

    async def _answer(self, request: web.Request) -> web.Response:
        await request.read()
        self.received[request.method] += 1
        if self.status == 0:
            assert request.transport is not None, "the connection is open"
            request.transport.close()
        return web.Response(status=self.status or 500, text=self.name)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        self.received["stream"] += 1
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Node": self.name})
        await response.prepare(request)
        await response.write(b"event: start\n\n")
        await self.event.wait()
        await response.write(b"event: end\n\n")
        return response


@asynccontextmanager
async def three_nodes() -> AsyncIterator[list[Node]]:
    async with AsyncExitStack() as stack:
        nodes = [Node(address) for address in ADDRESSES]
        for node in nodes:
            await node.start()
            stack.push_async_callback(node.stop)
        yield nodes


@asynccontextmanager
async def live_stream(
    http: ClientSession, url: str, nodes: Iterable[Node]
) -> AsyncIterator[tuple[Node, ClientResponse]]:
    """Begin a stream. Yield its node and its response after the first event."""
    async with http.post(url + STREAM, data=b"{}") as response:
        assert await response.content.readuntil(b"\n\n") == b"event: start\n\n"
        yield next(node for node in nodes if node.name == response.headers["X-Node"]), response


async def goes_on(node: Node, response: ClientResponse) -> bool:
    """Return whether a stream still passes on events, and its end."""
    node.event.set()
    return await response.read() == b"event: end\n\n"


async def asked(http: ClientSession, url: str, method: str = "GET") -> list[str]:
    """Send some requests, and return the node that answered each, or the status of the answer."""
    answers = []
    for _ in range(_ASK_TIMES):
        async with http.request(method, url + (READ if method == "GET" else CALL)) as answer:
            answers.append(await answer.text() if answer.status == 200 else str(answer.status))
    return answers


def without(node: Node, http: ClientSession, url: str) -> Callable[[], object]:
    """Return a condition for `until`: the proxy sends no more requests to `node`."""

    async def avoided() -> bool:
        return node.name not in await asked(http, url)

    return avoided
