"""The state that all protocols share: the bill and the switched-on faults. Turns requests into calls."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

from aiohttp import web

from streams.wire.errors import InvalidParameter
from vendors.sandbox.bill import Bill, End
from vendors.sandbox.calls import Call, Dialect, Handler, Refusal
from vendors.sandbox.deliveries import Deliveries
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.flow import AnswerEnded
from vendors.sandbox.sockets import ClientLeft

_KEPT_MAILS = 1000


class Sandbox:
    """The shared state. Protocols create their routes with `get()`, `post()` and `delete()`."""

    def __init__(self) -> None:
        self.bill = Bill()
        self.switches: dict[str, KeyOptions] = {}
        self.vendors: set[str] = set()
        """The names of all vendors."""
        self.mails: deque[dict[str, Any]] = deque(maxlen=_KEPT_MAILS)
        """The emails that its mail server got, the newest first."""
        self.deliveries = Deliveries()
        """The webhooks that its payment platforms call."""
        self.tls_url = ""
        """Its address with TLS, which the authority in `authority.py` certifies."""
        self.clocks: list[Callable[[str, timedelta], None]] = []
        """What moves the clock of an account, one function for each platform that has clocks."""
        self._calls: Counter[str] = Counter()

    def reset(self) -> None:
        """Forget all calls, faults and emails, and webhooks still to be called. Open calls stay in the old bill."""
        self.bill = Bill()
        self.switches.clear()
        self.mails.clear()
        self.deliveries.forget()
        self._calls.clear()

    def get(self, path: str, dialect: Dialect, stage: str, handler: Handler) -> web.RouteDef:
        return web.get(path, self._handler(dialect, stage, handler), allow_head=False)

    def post(self, path: str, dialect: Dialect, stage: str, handler: Handler) -> web.RouteDef:
        return web.post(path, self._handler(dialect, stage, handler))

    def delete(self, path: str, dialect: Dialect, stage: str, handler: Handler) -> web.RouteDef:
        return web.delete(path, self._handler(dialect, stage, handler))

    def _handler(
        self, dialect: Dialect, stage: str, handler: Handler
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        self.vendors.add(dialect.vendor)

        async def serve(request: web.Request) -> web.StreamResponse:
            headers = dict(dialect.headers(request))
            with ExitStack() as files:
                try:
                    await _read_body(request, files)  # Vendors read the body before they refuse a request.
                    call = self._call(request, dialect, stage)
                except Refusal as refusal:
                    return _error_response(refusal, headers)
                call.headers |= headers
                return await self._answer(call, handler)

        return serve

    def _call(self, request: web.Request, dialect: Dialect, stage: str) -> Call:
        key = dialect.key(request)
        try:
            key_options = KeyOptions.of_key(key)
        except InvalidParameter as error:
            raise Refusal(400, {"error": {"message": error.what, "type": "sandbox"}}) from None
        if key in {"", "wrong"}:
            raise dialect.refuse(Fault.UNAUTHORIZED, key_options)
        if key_options.fault is None and (switched := self.switches.get(dialect.vendor)):
            merged = {**switched.model_dump(exclude_unset=True), **key_options.model_dump(exclude_unset=True)}
            key_options = KeyOptions.of(merged)
        counter_key = f"{dialect.vendor} {key}"
        fault = key_options.fault if key_options.has_fault(self._calls[counter_key]) else None
        self._calls[counter_key] += 1
        request_id = request.headers.get("X-Request-Id", "")
        entry = self.bill.begin(dialect.vendor, stage, key=key_options.name, fault=fault, request_id=request_id)
        return Call(request, dialect, key_options, entry, self.bill, fault)

    async def _answer(self, call: Call, handler: Handler) -> web.StreamResponse:
        how: End = "fault"
        try:
            await call.apply_early_fault()
            await handler(call)
            call.end()
        except AnswerEnded:
            pass
        except Refusal as refusal:
            how = "fault" if call.fault else "refused"
            return _error_response(refusal, call.headers)
        except (asyncio.CancelledError, ConnectionError, ClientLeft) as error:
            how = "closed_by_client"
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self.bill.end(call.entry, how)
        assert call.response is not None, "the handler sent no response"
        return call.response


def _error_response(refusal: Refusal, headers: dict[str, str]) -> web.Response:
    return web.Response(status=refusal.status, body=refusal.body, headers={**headers, **refusal.headers})


async def _read_body(request: web.Request, files: ExitStack) -> None:
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
