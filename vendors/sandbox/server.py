"""The sandbox's HTTP server: every vendor under a separate prefix, and a control API under `/_sandbox`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from aiohttp import web

from streams.tasks import background
from streams.wire.codec import dumps, loads_request
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model
from vendors.sandbox import anthropic, elevenlabs, events, mail, midjourney, replicate, sms
from vendors.sandbox.authority import tls_context
from vendors.sandbox.azure import azure
from vendors.sandbox.bill import Bill
from vendors.sandbox.faults import KeyOptions
from vendors.sandbox.google import gemini, google
from vendors.sandbox.openai import openai
from vendors.sandbox.openai import speech as openai_speech
from vendors.sandbox.openai import transcription as openai_transcription
from vendors.sandbox.payments.paypal import paypal
from vendors.sandbox.payments.stripe import stripe
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin import (
    alipay,
    amazon,
    apple,
    choices,
    facebook,
    game_center,
    instagram,
    jd,
    kakao,
    line,
    microsoft,
    qq,
    taobao,
    wechat,
    wechat_mini,
    weibo,
)
from vendors.sandbox.signin import google as google_sign_in

SIGN_IN = (
    alipay,
    amazon,
    apple,
    facebook,
    game_center,
    google_sign_in,
    instagram,
    jd,
    kakao,
    line,
    microsoft,
    qq,
    taobao,
    wechat,
    wechat_mini,
    weibo,
)
"""The sign-in providers."""
PROTOCOLS = (
    anthropic,
    azure,
    elevenlabs,
    events,
    gemini,
    google,
    mail,
    midjourney,
    openai,
    openai_speech,
    openai_transcription,
    paypal,
    replicate,
    sms,
    stripe,
    choices,
    *SIGN_IN,
)
"""Modules with a function `routes(sandbox)`."""

_MAX_BODY_BYTES = 64 * 1024 * 1024
_MAX_LINE_BYTES = 32 * 1024
_SHUTDOWN_S = 1.0


@dataclass(frozen=True, slots=True)
class Running:
    """A running sandbox. `url` has no slash at its end. Every TLS handshake with `broken_tls_url` fails.

    `inbox_url` is `smtp://<host>:<port>`, the address of its mail server. The one at `ascii_inbox_url` has the same
    inbox and does not support SMTPUTF8.
    """

    url: str
    inbox_url: str
    ascii_inbox_url: str
    broken_tls_url: str
    sandbox: Sandbox
    server: web.Server

    @property
    def bill(self) -> Bill:
        return self.sandbox.bill

    async def reset(self) -> None:
        """Close all connections, and forget all calls, faults and emails."""
        self.server.pre_shutdown()
        await self.server.shutdown(_SHUTDOWN_S)
        self.sandbox.reset()


@asynccontextmanager
async def listening(*, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Running]:
    """Serve until the block ends. When a client disconnects, its handler is cancelled."""
    sandbox = Sandbox()
    runner = web.AppRunner(
        _app(sandbox),
        handler_cancellation=True,
        shutdown_timeout=_SHUTDOWN_S,
        access_log=None,
        # Tokens of sign-in platforms are longer than the default of 8 KiB.
        max_line_size=_MAX_LINE_BYTES,
        max_field_size=_MAX_LINE_BYTES,
    )
    async with AsyncExitStack() as stack:
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, host, port, backlog=4_096).start()
        await web.TCPSite(runner, host, 0, backlog=128, ssl_context=tls_context(host)).start()
        broken_tls = await asyncio.start_server(_break_tls, host, 0)
        stack.push_async_callback(broken_tls.wait_closed)
        stack.callback(broken_tls.close)
        mail_port = await stack.enter_async_context(mail.mail_server(sandbox, host=host))
        ascii_port = await stack.enter_async_context(mail.mail_server(sandbox, host=host, smtputf8=False))
        name = f"[{host}]" if ":" in host else host
        sandbox.tls_url = f"https://{name}:{runner.addresses[1][1]}"
        await stack.enter_async_context(background(sandbox.deliveries.run()))
        assert runner.server is not None, "it is set up"
        yield Running(
            url=f"http://{name}:{runner.addresses[0][1]}",
            inbox_url=f"smtp://{name}:{mail_port}",
            ascii_inbox_url=f"smtp://{name}:{ascii_port}",
            broken_tls_url=f"https://{name}:{broken_tls.sockets[0].getsockname()[1]}",
            sandbox=sandbox,
            server=runner.server,
        )


async def _break_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1024)
    writer.write(b"\x15\x03\x03\x00\x02\x02\x28")  # The fatal alert handshake_failure.
    writer.close()


def _app(sandbox: Sandbox) -> web.Application:
    app = web.Application(middlewares=[_errors_as_json], client_max_size=_MAX_BODY_BYTES)
    for protocol in PROTOCOLS:
        app.add_routes(protocol.routes(sandbox))
    control = _ControlApi(sandbox)
    app.add_routes(
        [
            web.get("/_sandbox/calls", control.calls),
            web.delete("/_sandbox/calls", control.clear_calls),
            web.get("/_sandbox/faults", control.faults),
            web.post("/_sandbox/faults", control.switch),
            web.delete("/_sandbox/faults", control.clear),
            web.post("/_sandbox/clock", control.move_clock),
        ]
    )
    return app


class _Clock(Model):
    account: str
    """The id of an account, such as PayPal's client id."""
    offset_s: float
    """How far its clock is ahead of real time."""


class _ControlApi:
    """The control API, for the command line and for tests in other processes."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def calls(self, request: web.Request) -> web.Response:
        since = request.query.get("since", "0")
        if not since.isdecimal():
            raise InvalidParameter("since must be the id of a call")
        key = request.query.get("key")
        entries = self._sandbox.bill.since(int(since))
        return _json({"calls": [entry.as_json() for entry in entries if key in {None, entry.key}]})

    async def clear_calls(self, request: web.Request) -> web.Response:
        self._sandbox.bill.clear()
        return _json({})

    async def faults(self, request: web.Request) -> web.Response:
        switches = self._sandbox.switches.items()
        return _json({vendor: key_options.model_dump(exclude_unset=True) for vendor, key_options in switches})

    async def switch(self, request: web.Request) -> web.Response:
        """Switch on a fault. The body is `{"vendor": …, "fault": …}` with further options."""
        body = loads_request(await request.read())
        vendor = body.pop("vendor", None) if isinstance(body, dict) else None
        if not isinstance(vendor, str):
            raise InvalidParameter("vendor is required")
        if vendor not in self._sandbox.vendors:
            raise InvalidParameter(f"vendor must be one of {', '.join(sorted(self._sandbox.vendors))}")
        key_options = KeyOptions.of(body)
        if key_options.fault is None:
            raise InvalidParameter("fault is required")
        self._sandbox.switches[vendor] = key_options
        return _json({"vendor": vendor, **key_options.model_dump(exclude_unset=True)})

    async def move_clock(self, request: web.Request) -> web.Response:
        """Move the clock of an account at all platforms that know it. What is due by then happens at once."""
        clock = _Clock.of(loads_request(await request.read()))
        for move in self._sandbox.clocks:
            move(clock.account, timedelta(seconds=clock.offset_s))
        return _json({})

    async def clear(self, request: web.Request) -> web.Response:
        """Switch off the fault of the `vendor` in the query, or all faults."""
        vendor = request.query.get("vendor")
        for name in [vendor] if vendor else list(self._sandbox.switches):
            self._sandbox.switches.pop(name, None)
        return _json({})


@web.middleware
async def _errors_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer errors outside of calls with JSON."""
    try:
        return await handler(request)
    except InvalidParameter as error:
        return _json({"error": {"message": error.what, "type": "sandbox"}}, status=400)
    except web.HTTPException as error:
        message = f"{error.reason}: {request.method} {request.path}"
        return _json({"error": {"message": message, "type": "invalid_request_error"}}, status=error.status)


def _json(value: object, *, status: int = 200) -> web.Response:
    return web.Response(body=dumps(value), status=status, content_type="application/json")
