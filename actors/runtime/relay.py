"""Access to streams of other processes, and other processes' access to the streams of this one."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Collection
from contextlib import asynccontextmanager, suppress

from actors.runtime.actor import Actor
from actors.runtime.context import Owner, Stop
from actors.runtime.inspection import inspect
from actors.runtime.mailbox import Attach, Cancel, Detach
from actors.runtime.remote_log import MAX_READERS, RemoteLog, Successor, draining, too_many_readers
from actors.runtime.supervisor import Supervisor
from storage.conversations.admission import StreamLocation
from storage.conversations.detached_logs import DetachedLog
from storage.processes.heartbeats import Heartbeat
from storage.processes.process_rpc import Message, NotSubscribed, ProcessRpc, listening
from storage.valkey.client import Valkey
from streams.wire.errors import ServiceError, StoreError, Unavailable

_RESPONSE_TIMEOUT_S = 2
_CANCEL_TIMEOUT_S = 15
_LEASE_S = 20
_LAST_EVENTS_S = 5
_REPLICATION_TIMEOUT_S = 1.5


class Relay:
    """Connects readers in this process with streams in other processes, and the reverse."""

    def __init__(self, valkey: Valkey, rpc: ProcessRpc, supervisor: Supervisor, heartbeat: Heartbeat) -> None:
        self._valkey = valkey
        self._rpc = rpc
        self._heartbeat = heartbeat
        self._supervisor = supervisor
        self._readers: Counter[str] = Counter()
        self._open: set[RemoteLog] = set()
        self._no_readers = asyncio.Event()
        """Set while no reader of this process reads a stream of another one."""
        self._no_readers.set()
        self._draining = False
        self._leases: dict[str, asyncio.TimerHandle] = {}
        """The expiry timers of readers in other processes, by reader id."""

    @asynccontextmanager
    async def attached(
        self,
        owner: Owner,
        location: StreamLocation,
        *,
        successor: Successor | None = None,
        watches: bool = False,
    ) -> AsyncIterator[RemoteLog]:
        """Open a stream that runs, or ran, in another process. `successor` opens its rest if that process is dead.

        A reader that only `watches` does not count: the stream neither waits for it nor lives on for it.

        Raises `RateLimited` if it has too many readers, and `Unavailable` if this process drains.
        """
        if self._draining:
            raise draining()
        if self._readers[location.stream_id] >= MAX_READERS:
            raise too_many_readers()
        detached = DetachedLog(
            self._valkey, app_id=owner.app_id, user_id=owner.user_id, stream_id=location.stream_id
        )

        def request(message: Message) -> Awaitable[Message | None]:
            return self.request(location, {**message, "watches": watches}, owner=owner)

        remote = RemoteLog(detached, request=request, successor=successor)
        self._readers[location.stream_id] += 1
        self._open.add(remote)
        self._no_readers.clear()
        try:
            await remote.attach()
            yield remote
        finally:
            self._open.discard(remote)
            if not self._open:
                self._no_readers.set()
            self._readers[location.stream_id] -= 1
            if not self._readers[location.stream_id]:
                del self._readers[location.stream_id]
            await self.notify(location, {"op": "leave", "reader_id": remote.reader_id}, owner=owner)

    async def drain(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` seconds until no reader of this process reads a stream of another one.

        Then end the remaining responses with an `error` event, after which clients resume through another process.
        """
        if await self._no_readers_within(timeout_s):
            return
        self._draining = True
        for remote in self._open:
            remote.drain()
        await self._no_readers_within(_LAST_EVENTS_S)

    async def _no_readers_within(self, timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                await self._no_readers.wait()
        except TimeoutError:
            return False
        return True

    async def cancel(self, owner: Owner, location: StreamLocation, heard_ms: int | None) -> bool:
        """Ask the stream's process to cancel it and wait until it has.

        Return `False` if that process is dead, has no such stream or does not respond.
        """
        answer = await self.request(
            location, {"op": "cancel", "heard_ms": heard_ms}, owner=owner, within_s=_CANCEL_TIMEOUT_S
        )
        return answer is not None and answer["known"]

    async def has_whole_input(self, owner: Owner, location: StreamLocation, *, within_s: float) -> bool:
        """Return whether the stream has its whole input, so that it can answer a repeated request.

        `False` means that it may end without an answer, or has just done so. For a stream of this process, this
        waits up to `within_s`. If the process of the stream is dead or does not respond, the result is `True`.
        """
        if (actor := self._supervisor.find(location.stream_id, owner)) is not None:
            return await _has_whole_input(actor, within_s=within_s)
        if location.process == self._rpc.process:
            return False
        request = {"op": "input", **_identify(location, owner)}
        try:
            answer = await self._rpc.call(location.process, request, within_s=_RESPONSE_TIMEOUT_S)
        except NotSubscribed:
            return True
        return answer is None or bool(answer.get("whole"))

    async def request(
        self, location: StreamLocation, message: Message, *, owner: Owner, within_s: float = _RESPONSE_TIMEOUT_S
    ) -> Message | None:
        """Send a request to the stream's process.

        Return the response, `{"known": False}` if the process has ended or has no such stream, or `None` if a
        process that is alive does not respond. `dead` is added if it is certainly dead, or is this one. One
        without a subscription may be alive, and only cut off.
        """
        if location.process == self._rpc.process:  # A stream in this process is looked up in the supervisor first.
            return {"known": False, "dead": True}
        try:
            request = {**message, **_identify(location, owner)}
            answer = await self._rpc.call(location.process, request, within_s=within_s)
        except NotSubscribed:
            return {"known": False, "dead": bool(await self._heartbeat.dead([location.process]))}
        if answer is None and await self._heartbeat.dead([location.process]):
            return {"known": False, "dead": True}
        return answer

    async def notify(self, location: StreamLocation, message: Message, *, owner: Owner) -> None:
        """Send a message to the stream's process without waiting for a response."""
        with suppress(StoreError):
            await self._rpc.notify(location.process, {**message, **_identify(location, owner)})

    async def ask_all(
        self, processes: Collection[str], message: Message, *, within_s: float
    ) -> dict[str, Message | None]:
        """Ask processes for what they have. `None`: one does not respond in time, or has just ended."""
        # An earlier version takes this for a question about a stream that it does not have.
        request = {"app_id": "", "user_id": "", "stream_id": "", **message}
        asked = [process for process in processes if process != self._rpc.process]
        answers = await asyncio.gather(*(self._ask(process, request, within_s=within_s) for process in asked))
        return dict(zip(asked, answers, strict=True))

    async def _ask(self, process: str, request: Message, *, within_s: float) -> Message | None:
        try:
            answer = await self._rpc.call(process, request, within_s=within_s)
        except (NotSubscribed, StoreError):
            return None
        return answer if answer is not None and "found" in answer else None

    async def answer(self, request: Message) -> Message | None:
        """Handle a request of another process for a stream of this one. Return the response, if there is one."""
        if "wanted" in request:
            return {"found": await inspect(self._supervisor, request["op"], request["wanted"])}
        owner = Owner(request["app_id"], request["user_id"])
        actor = self._supervisor.find(request["stream_id"], owner)
        if actor is None:
            return {"known": False}
        match request["op"]:
            case "read":
                return await self._let_read(actor, None if request.get("watches") else request["reader_id"])
            case "leave":
                self._end_lease(actor, request["reader_id"])
            case "input":
                return {"known": True, "whole": _can_answer_repeat(actor)}
            case "cancel":
                await cancel(actor, request["heard_ms"])
                return {"known": True}
        return None

    async def _let_read(self, actor: Actor, reader_id: str | None) -> Message:
        """Attach a reader of another process, or renew its lease, and copy the events that Valkey lacks.

        `None` is a reader that does not count. The copy lacks events if Valkey was unavailable when it ended.
        """
        if reader_id is not None and not actor.log.closed:
            if reader_id not in self._leases and actor.readers >= MAX_READERS:
                return {"known": True, "full": True}
            self._renew(actor, reader_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(_REPLICATION_TIMEOUT_S):
                await actor.replicate()
        return {"known": True, "closed": actor.log.closed, "last": actor.log.last_id}

    def _renew(self, actor: Actor, reader_id: str) -> None:
        if (lease := self._leases.pop(reader_id, None)) is not None:
            lease.cancel()
        else:
            actor.send(Attach())
        loop = asyncio.get_running_loop()
        self._leases[reader_id] = loop.call_later(_LEASE_S, self._end_lease, actor, reader_id)

    def _end_lease(self, actor: Actor, reader_id: str) -> None:
        if (lease := self._leases.pop(reader_id, None)) is not None:
            lease.cancel()
            actor.send(Detach())

    def close(self) -> None:
        for lease in self._leases.values():
            lease.cancel()
        self._leases.clear()


@asynccontextmanager
async def open_relay(valkey: Valkey, heartbeat: Heartbeat, supervisor: Supervisor) -> AsyncIterator[Relay]:
    """Answer requests of other processes within the block."""
    rpc = ProcessRpc(valkey, heartbeat.process)
    relay = Relay(valkey, rpc, supervisor, heartbeat)
    async with listening(rpc, relay.answer):
        try:
            yield relay
        finally:
            relay.close()


async def cancel(actor: Actor, heard_ms: int | None) -> None:
    """Cancel a stream of this process and wait for its end.

    If the stream has already ended, truncate its stored answer to what was heard. Raises `Unavailable` if the
    stream does not end in time.
    """
    if not actor.outcome.done():
        actor.send(Cancel(heard_ms=heard_ms))
        done, _ = await asyncio.wait([actor.outcome], timeout=_CANCEL_TIMEOUT_S)
        if not done:
            raise Unavailable("the stream has not ended yet")
    if heard_ms is not None and actor.ctx.heard_ms is None and actor.ctx.revise is not None:
        await actor.ctx.revise(heard_ms)


async def _has_whole_input(actor: Actor, *, within_s: float) -> bool:
    """Wait until the stream's input is complete or the stream has ended.

    Return `False` if the client disconnected before its input was complete, or after `within_s` seconds.
    """
    try:
        async with asyncio.timeout(within_s):
            with suppress(ServiceError):
                await actor.ctx.input.completed()
                return True
            await asyncio.wait([actor.outcome])
    except TimeoutError:
        return False
    return _can_answer_repeat(actor)


def _can_answer_repeat(actor: Actor) -> bool:
    """Return whether this stream can serve a repeat of its request.

    An aborted stream cannot, although it can be found until its task is done: it ends without an answer.
    """
    return actor.ctx.stop is not Stop.ABORTED and (actor.ctx.input.complete or actor.outcome.done())


def _identify(location: StreamLocation, owner: Owner) -> Message:
    return {"app_id": owner.app_id, "user_id": owner.user_id, "stream_id": location.stream_id}
