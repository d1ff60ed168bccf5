"""Strategies in order until one has output: one piece of code under every list of attempts (§4.19)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import structlog
from prometheus_client import Counter

from streams.wire.errors import ServiceError
from vendors.errors import Empty, TimedOut

log = structlog.get_logger()
ATTEMPTS = Counter("parley_vendor_attempts", "Attempts by outcome", ["stage", "vendor", "outcome"])

Stage = Literal["stt", "llm", "tts", "assess"]
Item = TypeVar("Item")
Opener = Callable[[], AbstractAsyncContextManager[AsyncIterator[Item]]]


@dataclass(frozen=True, slots=True)
class Attempt(Generic[Item]):
    """One strategy's try. `open` may raise at once: a broken config is a failed attempt.

    The first item for which `is_output` holds is the first output; what comes before it is held.
    """

    strategy: str
    stage: Stage
    vendor: str
    open: Opener[Item]
    is_output: Callable[[Item], bool]
    first_output_s: float
    between_s: float


def failed_attempt(strategy: str, stage: Stage, fault: ServiceError) -> Attempt[Any]:
    """The attempt of a strategy that cannot even be asked."""

    def refuse() -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        raise fault.with_traceback(None)  # a kept fault must not gather the frames of every stream that meets it

    return Attempt(strategy, stage, "none", refuse, lambda _: True, first_output_s=1, between_s=1)


class AllStrategiesFailed(ServiceError):
    """No attempt had output; `extra.attempts` tells why, one by one."""

    error_type = "all_strategies_failed"
    retryable = True

    def __init__(self, failures: Sequence[dict[str, Any]]) -> None:
        names = ", ".join(failure["strategy"] for failure in failures) or "none"
        super().__init__(f"every strategy failed ({names})", extra={"attempts": list(failures)})


@asynccontextmanager
async def first_success(
    attempts: Sequence[Attempt[Item]],
) -> AsyncIterator[tuple[Attempt[Item], AsyncIterator[Item]]]:
    """The first attempt that has output, and all its items from the first.

    Before its first output any failure means the next attempt; after it the failure is raised to the reader.
    Losers are closed before the block runs, the winner when it ends.
    """
    failures: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    for attempt in attempts:
        begun = loop.time()
        async with AsyncExitStack() as stack:
            try:
                items, held = await _first_output(attempt, stack)
            except ServiceError as error:
                failures.append(_failed(attempt, error, round((loop.time() - begun) * 1000)))
                continue
            ATTEMPTS.labels(attempt.stage, attempt.vendor, "won").inc()
            async with aclosing(_all_items(attempt, held, items)) as all_items:
                yield attempt, all_items
            return
    raise AllStrategiesFailed(failures)


async def _first_output(attempt: Attempt[Item], stack: AsyncExitStack) -> tuple[AsyncIterator[Item], list[Item]]:
    held: list[Item] = []
    try:
        async with asyncio.timeout(attempt.first_output_s):
            items = await stack.enter_async_context(attempt.open())
            async for item in items:
                held.append(item)
                if attempt.is_output(item):
                    return items, held
    except TimeoutError:
        raise TimedOut(attempt.vendor, f"had no output in {attempt.first_output_s:g} s") from None
    raise Empty(attempt.vendor, "answered with nothing")


async def _all_items(attempt: Attempt[Item], held: list[Item], items: AsyncIterator[Item]) -> AsyncGenerator[Item]:
    for item in held:
        yield item
    while True:
        try:
            async with asyncio.timeout(attempt.between_s):
                item = await anext(items)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise TimedOut(attempt.vendor, f"was silent for {attempt.between_s:g} s") from None
        yield item


def _failed(attempt: Attempt[Any], error: ServiceError, elapsed_ms: int) -> dict[str, Any]:
    ATTEMPTS.labels(attempt.stage, attempt.vendor, "failed").inc()
    log.warning(
        "attempt.failed",
        strategy=attempt.strategy,
        stage=attempt.stage,
        vendor=attempt.vendor,
        error=str(error),
        elapsed_ms=elapsed_ms,
    )
    return {
        "strategy": attempt.strategy,
        "stage": attempt.stage,
        "error_type": error.error_type,
        "message": str(error),
        "elapsed_ms": elapsed_ms,
    }
