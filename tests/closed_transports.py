"""Closes the transports of a command at each of its awaits, to see how it ends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from enum import Enum
from itertools import count
from typing import Any

from tests.waiting import passes

_OPENING = ("create_connection", "create_unix_connection", "start_tls")
_MOST_AWAITS = 500


class Moment(Enum):
    """When the transports are closed. In each case, the command may use them once more."""

    WAITING = "while the command waits"
    CLOSING = "before it continues, and the loop reports the loss afterwards"
    CLOSED = "before it continues, and the loop has reported the loss"


class _Cut:
    """Closes all transports at the await number `at`, counted over the command and its tasks."""

    def __init__(self, transports: list[asyncio.Transport], moment: Moment, at: int) -> None:
        self.happened = False
        self.closed = 0
        """How many open transports were closed."""
        self._transports = transports
        self._moment = moment
        self._at = at
        self._awaits = 0

    def waits(self) -> bool:
        """Count an await. Return whether the transports are to be closed when the command continues."""
        self._awaits += 1
        if self._awaits != self._at:
            return False
        if self._moment is Moment.WAITING:
            self.close()
            return False
        return True

    def close(self) -> int:
        """Close the transports. Return for how many passes of the loop the command must not continue."""
        self.happened = True
        for transport in self._transports:
            self.closed += not transport.is_closing()
            transport.abort()
        self._transports.clear()
        return 3 if self._moment is Moment.CLOSED else 0


_CUT: ContextVar[_Cut | None] = ContextVar("cut", default=None)


class ClosingTransports:
    """Runs commands whose transports it closes."""

    def __init__(self) -> None:
        self._transports: list[asyncio.Transport] = []
        self._unretrieved: list[dict[str, Any]] = []

    def opened(self, transport: asyncio.Transport) -> None:
        self._transports.append(transport)

    def reported(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle what the loop reports: of the tasks of commands, and not of their servers."""
        task = context.get("future")
        if isinstance(task, asyncio.Task) and isinstance(task.get_coro(), _Driven):
            self._unretrieved.append(context)

    async def check(
        self,
        command: Callable[[], Coroutine[Any, Any, object]],
        *,
        error: type[Exception],
        healed: Callable[[], Awaitable[object]] | None = None,
    ) -> int:
        """Run `command` once per await and moment, closing its transports there. Return the number of failed runs.

        Each run must succeed or raise `error`. After it, `healed` must succeed. A transport must have been open.
        """
        failed = 0
        for moment in Moment:
            closed = 0
            for at in count(1):
                assert at < _MOST_AWAITS, "the command does not end"
                cut = _Cut(self._transports, moment, at)
                try:
                    await self._run(cut, command())
                except error:
                    failed += 1
                except BaseException as other:
                    other.add_note(f"The transports were closed at await {at}: {moment.value}.")
                    raise
                closed += cut.closed
                await passes(3)
                if healed is not None:
                    try:
                        await healed()
                    except Exception as other:
                        other.add_note(f"This followed a loss at await {at}: {moment.value}.")
                        raise
                assert not self._unretrieved, (self._unretrieved, at, moment)
                if not cut.happened:
                    break
            assert closed, f"no transport was open that could be closed {moment.value}"
        return failed

    async def _run(self, cut: _Cut, command: Coroutine[Any, Any, object]) -> None:
        token = _CUT.set(cut)
        try:
            async with asyncio.timeout(20):
                await asyncio.get_running_loop().create_task(command)
        finally:
            _CUT.reset(token)


class _Driven(Coroutine[Any, Any, Any]):
    """Runs a coroutine, as the coroutine of a task, and reports each of its awaits to `cut`."""

    def __init__(self, command: Coroutine[Any, Any, Any], cut: _Cut) -> None:
        self._command = command
        self._cut = cut
        self._closes = False
        self._passes = 0

    def send(self, value: Any) -> Any:
        if self._closes:
            self._closes, self._passes = False, self._cut.close()
        if self._passes:  # The task waits for this many passes of the loop.
            self._passes -= 1
            return None
        return self._next(self._command.send, value)

    def throw(self, *error: Any) -> Any:
        if self._closes:
            self._closes = False
            self._cut.close()
        return self._next(self._command.throw, *error)

    def _next(self, step: Callable[..., Any], *args: Any) -> Any:
        awaited = step(*args)
        self._closes = self._cut.waits()
        return awaited

    def close(self) -> None:
        self._command.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise NotImplementedError


@asynccontextmanager
async def closing_transports() -> AsyncIterator[ClosingTransports]:
    """Watch the transports that are opened in the block, and the tasks that commands start there."""
    loop = asyncio.get_running_loop()
    closing = ClosingTransports()
    factory, handler = loop.get_task_factory(), loop.get_exception_handler()

    def new_task(loop: asyncio.AbstractEventLoop, command: Any, **options: Any) -> asyncio.Task[Any]:
        if (cut := _CUT.get()) is not None:
            command = _Driven(command, cut)
        return asyncio.Task(command, loop=loop, **options)

    for name in _OPENING:
        setattr(loop, name, _recording(getattr(loop, name), closing.opened))
    loop.set_task_factory(new_task)
    loop.set_exception_handler(closing.reported)
    try:
        yield closing
    finally:
        loop.set_task_factory(factory)
        loop.set_exception_handler(handler)
        for name in _OPENING:
            delattr(loop, name)


def _recording(opens: Callable[..., Awaitable[Any]], opened: Callable[[Any], None]) -> Callable[..., Any]:
    async def record(*args: Any, **options: Any) -> Any:
        result = await opens(*args, **options)
        opened(result[0] if isinstance(result, tuple) else result)
        return result

    return record
