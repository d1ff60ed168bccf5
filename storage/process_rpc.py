"""How one process asks another: a channel of each, a question with an id, an answer on the asker's channel."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import structlog

from storage.redis import Valkey, map_errors
from streams.tasks import background, stopping
from streams.wire.codec import dumps, loads
from streams.wire.errors import StoreError
from streams.wire.ids import new_id

log = structlog.get_logger()

_AT_ONCE = 32
_WAITING = 1024
_SUBSCRIBE_AGAIN_S = 0.5

Message = dict[str, Any]
Answerer = Callable[[Message], Awaitable[Message | None]]


class ProcessRpc:
    """This process's side of it. Nothing here is kept: a question that nobody hears has no answer."""

    def __init__(self, valkey: Valkey, process: str) -> None:
        self.process = process
        self._valkey = valkey
        self._questions: asyncio.Queue[Message] = asyncio.Queue(_WAITING)
        self._awaited: dict[str, asyncio.Future[Message]] = {}
        self._subscribed = asyncio.Event()

    async def ask(self, process: str, message: Message, *, within_s: float) -> Message | None:
        """The answer of `process`; none where it is gone or does not answer in time."""
        question_id = new_id()
        answer = self._awaited[question_id] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(within_s):
                await self._subscribed.wait()  # or the answer would be missed
                if not await self._send(process, {**message, "id": question_id, "from": self.process}):
                    return None
                told: Message = await answer
                return told
        except TimeoutError:
            return None
        finally:
            del self._awaited[question_id]

    async def tell(self, process: str, message: Message) -> None:
        """Say something that needs no answer."""
        await self._send(process, message)

    async def _send(self, process: str, message: Message) -> int:
        with map_errors():
            heard: int = await self._valkey.client.publish(self._channel(process), dumps(message))
        return heard

    def _channel(self, process: str) -> str:
        return self._valkey.channel(f"process:{process}")

    async def listen(self) -> None:
        """Take what others say, until cancelled."""
        while not stopping():
            try:
                with map_errors():
                    async with self._valkey.client.pubsub(ignore_subscribe_messages=True) as pubsub:
                        await pubsub.subscribe(self._channel(self.process))
                        self._subscribed.set()
                        if stopping():
                            return
                        async for heard in pubsub.listen():
                            self._take(loads(heard["data"]))
            except StoreError as error:
                log.debug("process_rpc.unsubscribed", error=str(error))
            finally:
                self._subscribed.clear()
            await asyncio.sleep(_SUBSCRIBE_AGAIN_S)

    async def answer(self, answerer: Answerer) -> None:
        """Answer one question after the other, until cancelled; several of these run side by side."""
        while not stopping():
            question = await self._questions.get()
            try:
                told = await answerer(question)
                if told is not None and "from" in question:
                    await self.tell(question["from"], {**told, "answers": question["id"]})
            except StoreError as error:
                log.warning("process_rpc.unanswered", op=question.get("op"), error=str(error))
            except Exception:
                log.exception("process_rpc.crashed", op=question.get("op"))

    def _take(self, message: Message) -> None:
        if (question_id := message.get("answers")) is None:
            try:
                self._questions.put_nowait(message)
            except asyncio.QueueFull:
                log.warning("process_rpc.full", op=message.get("op"))
        elif (awaited := self._awaited.get(question_id)) is not None and not awaited.done():
            awaited.set_result(message)


@asynccontextmanager
async def listening(rpc: ProcessRpc, answerer: Answerer) -> AsyncIterator[None]:
    """Hear and answer while the block lasts."""
    async with AsyncExitStack() as stack:
        for _ in range(_AT_ONCE):
            await stack.enter_async_context(background(rpc.answer(answerer)))
        await stack.enter_async_context(background(rpc.listen()))
        yield
