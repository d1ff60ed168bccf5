"""One call to a sandboxed vendor, from its key to its last byte: what a protocol file is written with."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from aiohttp import WSCloseCode, web

from streams.wire.codec import dumps
from vendors.sandbox.bill import Bill, Entry
from vendors.sandbox.faults import Fault, Orders
from vendors.sandbox.flow import Close, Flow, Frame, Over
from vendors.sandbox.sockets import ClientLeft, Socket

_DRIP_MS = 250
_HTML = b"<!doctype html><title>Welcome</title><p>Please sign in to this network."


class Refusal(Exception):
    """An answer that is none, in the vendor's words; `body` is encoded as JSON unless it is bytes."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.body = body if isinstance(body, bytes) else dumps(body)
        self.headers = {"Content-Type": "application/json", **(headers or {})}


def _no_headers(request: web.Request) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a vendor says what all of them say."""

    vendor: str
    key: Callable[[web.Request], str]
    """The key that stands in a request; empty where there is none."""
    refuse: Callable[[Fault, Orders], Refusal]
    """The words for each of `REFUSALS`; the body of `server_error` also is the error inside a whole answer."""
    headers: Callable[[web.Request], Mapping[str, str]] = _no_headers
    """What every answer carries."""


@dataclass(frozen=True, slots=True)
class Framing:
    """How an answer flows; none where its framing has no such thing.

    `error`: an error behind the 200, or how a socket is closed by one. `malformed`: what no parser takes.
    `idle`: what may come again and again without output.
    """

    content_type: str
    error: Frame | Close | None = None
    malformed: Frame | None = None
    idle: Frame | None = None


@dataclass(slots=True)
class Call:
    """A request with a good key, and its answer."""

    request: web.Request
    dialect: Dialect
    orders: Orders
    entry: Entry
    bill: Bill
    fault: Fault | None
    headers: dict[str, str] = field(default_factory=dict)
    response: web.StreamResponse | None = None

    @property
    def billed(self) -> Counter[str]:
        """What is billed so far: usage is told from here, so that an answer cut short tells it rightly."""
        return self.entry.billed

    def asks(self, **facts: Any) -> None:
        """Let the bill tell what was asked for."""
        self.entry.asked |= facts

    def charge(self, **units: float) -> None:
        """Bill what was taken in."""
        self.billed.update(units)

    async def answer(self, value: Any, *, empty: Any = None, content_type: str = "application/json") -> None:
        """A whole answer, `value` as JSON unless it is bytes; `empty` is one that holds nothing."""
        if self.fault is Fault.EMPTY_ANSWER:
            value = empty
        body = value if isinstance(value, bytes) else dumps(value)
        if self.fault is Fault.MALFORMED_FRAME:
            body = body[: len(body) * 2 // 3]
        if self.fault is Fault.ERROR_INSIDE_200:
            body = self.dialect.refuse(Fault.SERVER_ERROR, self.orders).body
        self.response = web.StreamResponse(headers={**self.headers, "Content-Type": content_type})
        self.response.content_length = len(body)
        await self.response.prepare(self.request)
        flow = self._flow(Framing(content_type), within=_OF_A_WHOLE)
        half = len(body) // 2
        await flow.output(body[:half])
        await flow.output(body[half:])
        await flow.end()

    @asynccontextmanager
    async def stream(self, framing: Framing, headers: Mapping[str, str] | None = None) -> AsyncIterator[Flow]:
        """An answer that flows as a body of unknown length."""
        if self.fault is Fault.ERROR_INSIDE_200 and framing.error is None and self.orders.position == 0:
            await self.answer(None)
            raise Over
        self._check(framing)
        self.response = web.StreamResponse(
            headers={**self.headers, "Content-Type": framing.content_type, **(headers or {})}
        )
        await self.response.prepare(self.request)
        flow = self._flow(framing)
        yield flow
        await flow.end()

    @asynccontextmanager
    async def socket(self, framing: Framing, **options: Any) -> AsyncIterator[tuple[Socket, Flow]]:
        """An answer over a WebSocket: what comes in, and what goes out. `options` are aiohttp's.

        Closed with 1000 at the block's end. Once the client has closed it, whatever waits raises `ClientLeft`.
        """
        self._check(framing)
        response = web.WebSocketResponse(**options, autoclose=False)
        response.headers.update(self.headers)
        self.response = response
        await response.prepare(self.request)
        socket = Socket(response, self.request.transport)
        async with socket.reading():
            flow = self._flow(framing, socket)
            try:
                yield socket, flow
                await flow.end()
                self.end()
            except ClientLeft:
                self.bill.end(self.entry, "closed_by_client")
                raise
            finally:
                await socket.close(Close(WSCloseCode.OK))

    def end(self) -> None:
        """All is said; what the connection does behind that is no part of the call."""
        well = self.fault is None or self.fault is Fault.SLOW_DRIP
        self.bill.end(self.entry, "done" if well else "fault")

    async def come_instead(self) -> None:
        """The faults that come instead of an answer."""
        match self.fault:
            case Fault.REFUSE:
                if self.request.transport is not None:
                    self.request.transport.abort()
                self.response = web.Response()
                raise Over
            case Fault.HANG_BEFORE_HEADERS:
                await asyncio.Event().wait()
            case Fault.WRONG_CONTENT_TYPE:
                self.response = web.Response(body=_HTML, content_type="text/html", headers=self.headers)
                raise Over
            case (
                Fault.UNAUTHORIZED
                | Fault.RATE_LIMITED
                | Fault.OUT_OF_QUOTA
                | Fault.SERVER_ERROR
                | Fault.UNAVAILABLE
            ):
                raise self.dialect.refuse(self.fault, self.orders)

    def _check(self, framing: Framing) -> None:
        for fault, frame in ((Fault.MALFORMED_FRAME, framing.malformed), (Fault.ERROR_INSIDE_200, framing.error)):
            if self.fault is fault and frame is None:
                self.impossible(f"{fault} cannot come in {framing.content_type}")

    def impossible(self, what: str) -> NoReturn:
        """An order that this protocol cannot obey: better told than passed over."""
        raise Refusal(501, {"error": {"message": f"sandbox: {what}", "type": "sandbox"}})

    def _flow(
        self, framing: Framing, socket: Socket | None = None, *, within: frozenset[Fault] | None = None
    ) -> Flow:
        fault = self.fault if within is None or self.fault in within else None
        slow = self.fault is Fault.SLOW_DRIP
        return Flow(
            wire=socket or Body(self),
            entry=self.entry,
            bill=self.bill,
            fault=fault,
            position=self.orders.position,
            error=framing.error,
            malformed=framing.malformed,
            idle=framing.idle,
            delay_ms=self.orders.delay_ms,
            pace_ms=self.orders.pace_ms or (_DRIP_MS if slow else 0),
        )


_OF_A_WHOLE = frozenset({Fault.HANG_BEFORE_OUTPUT, Fault.STALL_MID_STREAM, Fault.CUT_MID_STREAM, Fault.SLOW_DRIP})
"""Faults within a whole answer that come while it is sent; the others are in what it says."""


class Body:
    """An HTTP body as a wire."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def send(self, frame: Frame) -> None:
        assert self._call.response is not None, "it is sent behind its headers"
        await self._call.response.write(frame if isinstance(frame, bytes) else frame.encode())

    async def pause(self, seconds: float | None) -> None:
        """A client that leaves cancels the handler."""
        if seconds is None:
            await asyncio.Event().wait()
        else:
            await asyncio.sleep(seconds)

    async def close(self, how: Close) -> None:
        raise TypeError("a body has no close codes")

    def cut(self) -> None:
        if self._call.request.transport is not None:
            self._call.request.transport.close()


Handler = Callable[[Call], Awaitable[None]]
