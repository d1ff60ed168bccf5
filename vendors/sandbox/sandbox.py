"""What the protocols share: the bill, the faults that are switched on, and how a request becomes a `Call`."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

from aiohttp import web

from streams.wire.errors import InvalidParameter
from vendors.sandbox.bill import Bill, End
from vendors.sandbox.calls import Call, Dialect, Handler, Refusal
from vendors.sandbox.faults import Fault, Orders
from vendors.sandbox.flow import Over
from vendors.sandbox.sockets import ClientLeft


class Sandbox:
    """One for all protocols; `get` and `post` make their routes."""

    def __init__(self) -> None:
        self.bill = Bill()
        self.switches: dict[str, Orders] = {}
        self.vendors: set[str] = set()
        """Whose protocols are spoken."""
        self._calls: Counter[str] = Counter()

    def get(self, path: str, dialect: Dialect, stage: str, handler: Handler) -> web.RouteDef:
        return web.get(path, self._served(dialect, stage, handler), allow_head=False)

    def post(self, path: str, dialect: Dialect, stage: str, handler: Handler) -> web.RouteDef:
        return web.post(path, self._served(dialect, stage, handler))

    def _served(
        self, dialect: Dialect, stage: str, handler: Handler
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        self.vendors.add(dialect.vendor)

        async def serve(request: web.Request) -> web.StreamResponse:
            headers = dict(dialect.headers(request))
            with ExitStack() as files:
                try:
                    await _take_in(request, files)  # a vendor does before it refuses it
                    call = self._call(request, dialect, stage)
                except Refusal as refusal:
                    return _refused(refusal, headers)
                call.headers |= headers
                return await self._answered(call, handler)

        return serve

    def _call(self, request: web.Request, dialect: Dialect, stage: str) -> Call:
        key = dialect.key(request)
        try:
            orders = Orders.of_key(key)
        except InvalidParameter as error:
            raise Refusal(400, {"error": {"message": error.what, "type": "sandbox"}}) from None
        if key in {"", "wrong"}:
            raise dialect.refuse(Fault.UNAUTHORIZED, orders)
        if orders.fault is None and (switched := self.switches.get(dialect.vendor)):
            told = {**switched.model_dump(exclude_unset=True), **orders.model_dump(exclude_unset=True)}
            orders = Orders.of(told)
        counted = f"{dialect.vendor} {key}"
        fault = orders.fault if orders.has_fault(self._calls[counted]) else None
        self._calls[counted] += 1
        request_id = request.headers.get("X-Request-Id", "")
        entry = self.bill.begin(dialect.vendor, stage, key=orders.name, fault=fault, request_id=request_id)
        return Call(request, dialect, orders, entry, self.bill, fault)

    async def _answered(self, call: Call, handler: Handler) -> web.StreamResponse:
        how: End = "fault"
        try:
            await call.come_instead()
            await handler(call)
            call.end()
        except Over:
            pass
        except Refusal as refusal:
            how = "fault" if call.fault else "refused"
            return _refused(refusal, call.headers)
        except (asyncio.CancelledError, ConnectionError, ClientLeft) as error:
            how = "closed_by_client"
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self.bill.end(call.entry, how)
        assert call.response is not None, "a handler answers"
        return call.response


def _refused(refusal: Refusal, headers: dict[str, str]) -> web.Response:
    return web.Response(status=refusal.status, body=refusal.body, headers={**headers, **refusal.headers})


async def _take_in(request: web.Request, files: ExitStack) -> None:
    if request.content_type != "multipart/form-data":
        await request.read()
        return
    try:
        form = await request.post()
    except ValueError:
        raise Refusal(
            400, {"error": {"message": "The form is malformed.", "type": "invalid_request_error"}}
        ) from None
    for field in form.values():
        if isinstance(field, web.FileField):
            files.callback(field.file.close)
