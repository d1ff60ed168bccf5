"""Acme's postcards under `/acme`."""

from aiohttp import web

from streams.wire.codec import loads
from vendors.sandbox.calls import Call
from vendors.sandbox.rest_dialect import rest_dialect
from vendors.sandbox.sandbox import Sandbox

ACME = rest_dialect("acme")


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    return [sandbox.post("/acme/orders", ACME, "postcards", _order)]


async def _order(call: Call) -> None:
    order = loads(await call.request.read())
    call.record(**order)
    await call.answer({"id": f"order-{order['reference']}"}, empty={})
