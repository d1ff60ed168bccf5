"""A collector of traces at a real socket, by OTLP over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from streams.wire.codec import dumps


def attributes(span: Span) -> dict[str, str | int]:
    return {entry.key: entry.value.string_value or entry.value.int_value for entry in span.attributes}


@dataclass
class Collector:
    """Answers with `status`. While `open` is not set, it does not answer."""

    url: str = ""
    status: int = 200
    open: asyncio.Event = field(default_factory=asyncio.Event)
    requested: asyncio.Event = field(default_factory=asyncio.Event)
    bodies: list[bytes] = field(default_factory=list)
    resource: dict[str, str | int] = field(default_factory=dict)
    traces: asyncio.Queue[tuple[Span, list[Span]]] = field(default_factory=asyncio.Queue)

    async def trace(self) -> tuple[Span, list[Span]]:
        """Return the span of the next stream and its children."""
        async with asyncio.timeout(20):
            return await self.traces.get()

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.requested.set()
        await self.open.wait()
        self.bodies.append(body)
        (sent,) = ExportTraceServiceRequest.FromString(body).resource_spans
        self.resource = {entry.key: entry.value.string_value for entry in sent.resource.attributes}
        spans = [span for scope in sent.scope_spans for span in scope.spans]
        for root in spans:
            if root.kind == Span.SPAN_KIND_SERVER:
                children = [span for span in spans if span.parent_span_id == root.span_id]
                self.traces.put_nowait((root, children))
        return web.Response(status=self.status, body=dumps({}))


@asynccontextmanager
async def running_collector() -> AsyncIterator[Collector]:
    collector = Collector()
    collector.open.set()
    app = web.Application()
    app.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces"
    try:
        yield collector
    finally:
        collector.open.set()
        await runner.cleanup()
