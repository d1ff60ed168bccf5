"""Pronunciation: how a text was read aloud, graded while it is read (§4.18)."""

import asyncio
import math
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from actors.context import StreamContext
from actors.records import keep_attempts, unit_price
from actors.strategies import Broken, Grader, hedge_of, price_of
from streams.audio import pcm_seconds
from streams.pcm import PcmDecoder
from streams.tape import Tape
from streams.tasks import background, unless_failed
from streams.wire.errors import InvalidParameter, ServiceError
from vendors.fallback import AllStrategiesFailed, Attempt, failed_attempt, first_success
from vendors.meter import Meter
from vendors.protocols import Assessment, AssessmentItem, AssessmentRequest

PCM_RATE = 16_000


class AllAccountsFailed(ServiceError):
    """No account graded the audio; `extra.attempts` tells why, one by one."""

    error_type = "backend unavailable"

    def __init__(self, attempts: Sequence[dict[str, Any]], *, retryable: bool) -> None:
        super().__init__("no account could assess the audio", extra={"attempts": attempts})
        self.retryable = retryable


@dataclass(frozen=True, slots=True)
class AssessmentPlan:
    """A request that was found good: the accounts of its strategy are looked up."""

    strategy: str
    request: AssessmentRequest
    graders: Sequence[tuple[str, Grader | Broken]]
    pcm: PcmDecoder
    """What writes the input, which are samples alone."""


async def assess(ctx: StreamContext, plan: AssessmentPlan) -> dict[str, Any]:
    """Play one assessment; returns the reply of §4.18."""
    try:
        with ctx.receipt.waiting():
            await _sound_has_come(ctx.input, plan.pcm)
            async with background(_completed(ctx)) as completed:
                with unless_failed(completed):
                    result, price = await _assessed(ctx, plan)
                await completed
    except AllStrategiesFailed as error:
        raise AllAccountsFailed(error.extra["attempts"], retryable=error.retryable) from None
    finally:
        ctx.settled = True
        await keep_attempts(ctx)
    ctx.receipt.first_output()
    if not result.text.strip():
        raise InvalidParameter("no speech was heard")
    return {"text": result.text, "raw_data": result.raw, "unit_price": price, "strategy": plan.strategy}


async def _sound_has_come(tape: Tape, pcm: PcmDecoder) -> None:
    """Wait for something to grade, or for the input's end: before, a vendor would only be kept waiting."""
    async with aclosing(tape.read()) as pieces:
        async for _ in pieces:
            if pcm.audible:
                return


async def _completed(ctx: StreamContext) -> None:
    await ctx.input.completed()
    ctx.receipt.mark("input")


async def _assessed(ctx: StreamContext, plan: AssessmentPlan) -> tuple[Assessment, dict[str, Any]]:
    """The result of the first account that gives a whole one, and what it used."""
    attempts = [_attempt(ctx, plan.request, name, grader) for name, grader in plan.graders]
    async with first_success(attempts, ctx.attempts) as (attempt, items):
        *_, result = [item async for item in items if isinstance(item, Assessment)]
    _, winner = plan.graders[attempts.index(attempt)]
    assert isinstance(winner, Grader), "a fault is no winner"
    won = next(account for account in ctx.attempts if account.outcome == "won")
    return result, unit_price(winner.config.price, won.usage)


def _attempt(
    ctx: StreamContext, request: AssessmentRequest, name: str, grader: Grader | Broken
) -> Attempt[AssessmentItem]:
    """An attempt whose time runs from the end of the input, longer for longer audio."""
    if isinstance(grader, Broken):
        return failed_attempt(name, "assess", grader.fault)
    heard = _InputGauge(ctx.input)
    return Attempt(
        strategy=name,
        stage="assess",
        vendor=grader.platform,
        open=lambda: grader.assessor.assess(heard, request),
        is_output=lambda item: isinstance(item, Assessment),
        first_output_s=grader.config.waits.first_output_s,
        between_s=grader.config.waits.between_s,
        hedge=hedge_of(grader.config),
        gate=grader.gate,
        meter=lambda: Meter(heard.whole_seconds),
        price=price_of(grader.config),
        clock=partial(_half_of_input_s, ctx.input),
    )


async def _half_of_input_s(tape: Tape) -> float:
    await tape.completed()
    return pcm_seconds(len(tape), PCM_RATE) / 2


class _InputGauge:
    """The input as one account hears it, and how much of it."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._bytes = 0

    async def read(self) -> AsyncGenerator[bytes]:
        """Samples from the first. Behind a fault of the input nothing comes: it is not the account that failed."""
        position = 0
        try:
            async with aclosing(self._tape.read()) as pieces:
                async for piece in pieces:
                    position += len(piece)
                    self._bytes = max(self._bytes, position)
                    yield piece
        except ServiceError:
            await asyncio.Event().wait()  # until the call is closed

    def whole_seconds(self) -> int:
        """As they are billed."""
        return math.ceil(pcm_seconds(self._bytes, PCM_RATE))
