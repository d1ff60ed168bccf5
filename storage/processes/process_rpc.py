"""Requests between server processes over Valkey channels.

Each process subscribes to its own channel. A request carries an id and the name of its sender; the response is
published on the sender's channel.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import structlog

from storage.valkey.client import Valkey, map_errors
from storage.valkey.subscriptions import subscribe
from streams.tasks import background, stopping
from streams.wire.codec import dumps, loads
from streams.wire.errors import StoreError
from streams.wire.ids import new_id

log = structlog.get_logger()

_CONCURRENCY = 32
_MAX_QUEUED = 1024
_SUBSCRIBED_WITHIN_S = 1.0
_LOOK_S = 0.5

Message = dict[str, Any]
Handler = Callable[[Message], Awaitable[Message | None]]


class NotSubscribed(Exception):
    """The process does not receive messages: it has ended."""


class ProcessRpc:
    """Sends and receives messages. Nothing is stored: a message to a process that is not subscribed is lost."""

    def __init__(self, valkey: Valkey, process: str) -> None:
        self.process = process
        self._valkey = valkey
        self._requests: asyncio.Queue[Message] = asyncio.Queue(_MAX_QUEUED)
        self._responses: dict[str, asyncio.Future[Message]] = {}
        self._subscribed = asyncio.Event()
        self._interruptions = 0
        """How often this process has lost its subscription, and with it perhaps a response."""

    async def call(self, process: str, message: Message, *, within_s: float) -> Message | None:
        """Send a request and return the response, or `None` if `process` does not respond in time.

        The request may arrive twice, because it is sent again if the subscription of this process was interrupted
        since. Raises `NotSubscribed` if the process has ended. A process whose subscription is interrupted
        subscribes again within a second.
        """
        request_id = new_id()
        answer = self._responses[request_id] = asyncio.get_running_loop().create_future()
        request = {**message, "id": request_id, "from": self.process}
        try:
            async with asyncio.timeout(within_s):
                while not answer.done():
                    await self._subscribed.wait()  # Otherwise the response would be lost.
                    interruptions = self._interruptions
                    await self._request(process, request)
                    while not answer.done() and interruptions == self._interruptions:
                        await asyncio.wait([answer], timeout=_LOOK_S)
                response: Message = answer.result()
                return response
        except TimeoutError:
            return None
        finally:
            del self._responses[request_id]

    async def _request(self, process: str, request: Message) -> None:
        if not await self._send(process, request):
            await asyncio.sleep(_SUBSCRIBED_WITHIN_S)
            if not await self._send(process, request):
                raise NotSubscribed

    async def notify(self, process: str, message: Message) -> None:
        """Send a message that has no response."""
        await self._send(process, message)

    async def _send(self, process: str, message: Message) -> int:
        with map_errors():
            receivers: int = await self._valkey.call(*self._valkey.message(_topic(process), dumps(message)))
        return receivers

    async def listen(self) -> None:
        """Receive messages until cancelled."""
        await subscribe(
            self._valkey,
            _topic(self.process),
            lambda raw: self._receive(loads(raw)),
            on_subscribed=self._subscribed.set,
            on_unsubscribed=self._note_interruption,
        )

    def _note_interruption(self) -> None:
        self._subscribed.clear()
        self._interruptions += 1

    async def answer(self, handler: Handler) -> None:
        """Handle one request after another until cancelled. Several of these run concurrently."""
        while not stopping():
            request = await self._requests.get()
            try:
                response = await handler(request)
                if response is not None and "from" in request:
                    await self.notify(request["from"], {**response, "answers": request["id"]})
            except StoreError as error:
                log.warning("process_rpc.unanswered", op=request.get("op"), error=str(error))
            except Exception:
                log.exception("process_rpc.crashed", op=request.get("op"))

    def _receive(self, message: Message) -> None:
        if (request_id := message.get("answers")) is None:
            try:
                self._requests.put_nowait(message)
            except asyncio.QueueFull:
                log.warning("process_rpc.queue_full", op=message.get("op"))
        elif (response := self._responses.get(request_id)) is not None and not response.done():
            response.set_result(message)


def _topic(process: str) -> str:
    return f"process:{process}"


@asynccontextmanager
async def listening(rpc: ProcessRpc, handler: Handler) -> AsyncIterator[None]:
    """Receive messages and answer requests during the block."""
    async with AsyncExitStack() as stack:
        for _ in range(_CONCURRENCY):
            await stack.enter_async_context(background(rpc.answer(handler)))
        await stack.enter_async_context(background(rpc.listen()))
        yield
