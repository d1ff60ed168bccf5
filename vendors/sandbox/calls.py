"""One call to a vendor of the sandbox. The modules of the protocols are written with `Call` and `Dialect`."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from aiohttp import WSCloseCode, web

from streams.wire.codec import dumps, loads
from vendors.sandbox.bill import Bill, BilledCall
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.flow import AnswerEnded, Close, Flow, Frame
from vendors.sandbox.sockets import ClientLeft, Socket

_DRIP_MS = 250
_PADDING_BYTES = 1024 * 1024
_HTML = b"<!doctype html><title>Welcome</title><p>Please sign in to this network."


class Refusal(Exception):
    """An error response of a vendor. `body` is encoded as JSON unless it is bytes."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.body = body if isinstance(body, bytes) else dumps(body)
        self.headers = {"Content-Type": "application/json", **(headers or {})}


def _no_headers(request: web.Request) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Dialect:
    """A vendor's keys, error responses and headers."""

    vendor: str
    key: Callable[[web.Request], str]
    """Returns the key of a request; an empty string if it has none."""
    refuse: Callable[[Fault, KeyOptions], Refusal]
    """Returns the error response for each of `REFUSALS`. That of `server_error` is also the error inside a 200."""
    headers: Callable[[web.Request], Mapping[str, str]] = _no_headers
    """Returns the headers of every response."""


@dataclass(frozen=True, slots=True)
class Framing:
    """The framing of a streamed answer. A frame that the protocol does not have is None.

    `error` is an error after the 200, or the close of a socket. `malformed` is a frame that no parser accepts.
    `idle` is a frame without output that may be repeated.
    """

    content_type: str
    error: Frame | Close | None = None
    malformed: Frame | None = None
    idle: Frame | None = None
    odd_frames: Callable[[bytes], Sequence[Frame]] | None = None
    """Returns the frames for JSON that a client should skip. On a socket they belong to a turn."""


@dataclass(slots=True)
class Call:
    """A request with a valid key, and its response."""

    request: web.Request
    dialect: Dialect
    key_options: KeyOptions
    entry: BilledCall
    bill: Bill
    fault: Fault | None
    headers: dict[str, str] = field(default_factory=dict)
    response: web.StreamResponse | None = None
    garble: Callable[[bytes], bytes] | None = None
    """Damages the JSON of an answer."""

    @property
    def billed(self) -> Counter[str]:
        """The usage so far. Answers report it, so the usage of a truncated answer is correct."""
        return self.entry.billed

    def record(self, **facts: Any) -> None:
        """Add parameters of the request to the bill."""
        self.entry.asked |= facts

    def charge(self, **units: float) -> None:
        """Add usage to the bill."""
        self.billed.update(units)

    @property
    def odd(self) -> list[Any]:
        """The values that a client should skip."""
        return list(loads(self.key_options.odd or "[]"))

    def encoded(self, value: Any) -> bytes:
        """Return `value` as the JSON of an answer."""
        raw = dumps(value)
        return raw if self.garble is None else self.garble(raw)

    async def answer(
        self, value: Any, *, empty: Any = None, content_type: str = "application/json", status: int = 200
    ) -> None:
        """Send a complete answer, `value` as JSON unless it is bytes. `empty` is the answer for `EMPTY_ANSWER`."""
        if self.fault is Fault.EMPTY_ANSWER:
            value = empty
        body = value if isinstance(value, bytes) else self.encoded(value)
        if self.fault is Fault.MALFORMED_FRAME:
            body = body[: len(body) * 2 // 3]
        if self.fault is Fault.HUGE_ANSWER:
            body += b" " * _PADDING_BYTES
        if self.fault is Fault.ERROR_INSIDE_200:
            body = self.dialect.refuse(Fault.SERVER_ERROR, self.key_options).body
        self.response = web.StreamResponse(status=status, headers={**self.headers, "Content-Type": content_type})
        self.response.content_length = len(body)
        await self.response.prepare(self.request)
        flow = self._flow(Framing(content_type), within=_FAULTS_WHILE_SENDING)
        half = len(body) // 2
        await flow.output(body[:half])
        await flow.output(body[half:])
        await flow.end()

    @asynccontextmanager
    async def stream(self, framing: Framing, headers: Mapping[str, str] | None = None) -> AsyncIterator[Flow]:
        """Stream an answer as a body of unknown length."""
        if self.fault is Fault.ERROR_INSIDE_200 and framing.error is None and self.key_options.position == 0:
            await self.answer(None)
            raise AnswerEnded
        self._check_framing(framing)
        self.response = web.StreamResponse(
            headers={**self.headers, "Content-Type": framing.content_type, **(headers or {})}
        )
        await self.response.prepare(self.request)
        flow = self._flow(framing)
        yield flow
        await flow.end()

    async def send_scripted(self, events: str) -> None:
        """Stream the events of a key, each of which counts as an output."""
        async with self.stream(Framing(self.key_options.content_type)) as flow:
            for event in re.split(r"(?<=\n\n)", events):
                await flow.output(event.encode("utf-8", "surrogateescape"))

    @asynccontextmanager
    async def socket(self, framing: Framing, **options: Any) -> AsyncIterator[tuple[Socket, Flow]]:
        """Answer over a WebSocket. `options` are passed to aiohttp.

        The socket is closed with code 1000 at the end of the block. When the client has closed it, all waiting
        methods raise `ClientLeft`.
        """
        self._check_framing(framing)
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
        """End the call. What happens on the connection afterwards is not recorded."""
        succeeded = self.fault is None or self.fault is Fault.SLOW_DRIP
        self.bill.end(self.entry, "done" if succeeded else "fault")

    async def apply_early_fault(self) -> None:
        """Apply a fault that replaces the answer."""
        match self.fault:
            case Fault.REFUSE:
                if self.request.transport is not None:
                    self.request.transport.abort()
                self.response = web.Response()
                raise AnswerEnded
            case Fault.HANG_BEFORE_HEADERS:
                await asyncio.Event().wait()
            case Fault.WRONG_CONTENT_TYPE:
                self.response = web.Response(body=_HTML, content_type="text/html", headers=self.headers)
                raise AnswerEnded
            case Fault.REDIRECT:
                location = {"Location": f"{self.request.path}/moved?{self.request.query_string}"}
                self.response = web.Response(status=302, headers={**self.headers, **location})
                raise AnswerEnded
            case (
                Fault.UNAUTHORIZED
                | Fault.RATE_LIMITED
                | Fault.OUT_OF_QUOTA
                | Fault.SERVER_ERROR
                | Fault.UNAVAILABLE
            ):
                raise self.dialect.refuse(self.fault, self.key_options)

    def _check_framing(self, framing: Framing) -> None:
        for fault, frame in ((Fault.MALFORMED_FRAME, framing.malformed), (Fault.ERROR_INSIDE_200, framing.error)):
            if self.fault is fault and frame is None:
                self.unsupported(f"{fault} is not possible in {framing.content_type}")
        if self.fault is Fault.HUGE_ANSWER:
            self.unsupported(f"{self.fault} is not possible in an answer in parts")

    def unsupported(self, reason: str) -> NoReturn:
        """Respond with 501, because the sandbox cannot do what was requested."""
        raise Refusal(501, {"error": {"message": f"sandbox: {reason}", "type": "sandbox"}})

    def _flow(
        self, framing: Framing, socket: Socket | None = None, *, within: frozenset[Fault] | None = None
    ) -> Flow:
        fault = self.fault if within is None or self.fault in within else None
        slow = self.fault is Fault.SLOW_DRIP
        return Flow(
            sink=socket or Body(self),
            entry=self.entry,
            bill=self.bill,
            fault=fault,
            position=self.key_options.position,
            error=framing.error,
            malformed=framing.malformed,
            idle=framing.idle,
            delay_ms=self.key_options.delay_ms,
            pace_ms=self.key_options.pace_ms or (_DRIP_MS if slow else 0),
            odd=[b"", *map(dumps, self.odd)] if self.key_options.odd else (),
            odd_frames=framing.odd_frames,
        )


_FAULTS_WHILE_SENDING = frozenset(
    {Fault.HANG_BEFORE_OUTPUT, Fault.STALL_MID_STREAM, Fault.CUT_MID_STREAM, Fault.SLOW_DRIP}
)
"""Faults of a complete answer that occur while it is sent. The others change its content."""


class Body:
    """An HTTP body as a sink of frames."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def send(self, frame: Frame) -> None:
        assert self._call.response is not None, "the headers have not been sent"
        await self._call.response.write(frame if isinstance(frame, bytes) else frame.encode())

    async def pause(self, seconds: float | None) -> None:
        """Sleep. If the client disconnects, aiohttp cancels the handler."""
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
