"""Pronunciation assessment: grade how a text is read aloud, while the audio arrives (§4.18)."""

import asyncio
import math
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from actors.clients.strategies import AssessmentAccount, Broken, hedge_of, price_of
from actors.plays.records import store_attempts, unit_price
from actors.runtime.context import StreamContext
from streams.audio.audio import pcm_seconds
from streams.audio.pcm import PcmDecoder
from streams.input_buffer import InputBuffer
from streams.tasks import background, unless_failed
from streams.wire.errors import BackendUnavailable, InvalidParameter, ServiceError
from vendors.calls.attempts import Attempt, failed_attempt
from vendors.calls.fallback import AllStrategiesFailed, first_success
from vendors.calls.meter import Meter
from vendors.protocols import Assessment, AssessmentItem, AssessmentRequest

PCM_RATE = 16_000


class AllAccountsFailed(BackendUnavailable):
    """No account could assess the audio. `extra.attempts` has the error of each."""

    def __init__(self, error: AllStrategiesFailed) -> None:
        attempts = {"attempts": error.extra["attempts"]}
        super().__init__("no account could assess the audio", extra=attempts, retry_after_s=error.retry_after_s)
        self.retryable = error.retryable


@dataclass(frozen=True, slots=True)
class AssessmentPlan:
    """A validated request: the accounts of its strategy are resolved."""

    strategy: str
    request: AssessmentRequest
    accounts: Sequence[tuple[str, AssessmentAccount | Broken]]
    pcm: PcmDecoder
    """The decoder whose samples are written to the stream's input."""


async def assess(ctx: StreamContext, plan: AssessmentPlan) -> dict[str, Any]:
    """Play one assessment. Return the reply of §4.18."""
    try:
        with ctx.receipt.waiting():
            await _wait_for_sound(ctx.input, plan.pcm)
            async with background(_completed(ctx)) as completed:
                with unless_failed(completed):
                    result, price = await _grade(ctx, plan)
                await completed
    except AllStrategiesFailed as error:
        raise AllAccountsFailed(error) from None
    finally:
        ctx.settled = True
        await store_attempts(ctx)
    ctx.receipt.first_output()
    if not result.text.strip():
        raise InvalidParameter("no speech was heard")
    return {"text": result.text, "raw_data": result.raw, "unit_price": price, "strategy": plan.strategy}


async def _wait_for_sound(buffer: InputBuffer, pcm: PcmDecoder) -> None:
    """Wait until the input contains sound or ends, so that no vendor connection is open during initial silence."""
    async with aclosing(buffer.read()) as pieces:
        async for _ in pieces:
            if pcm.audible:
                return


async def _completed(ctx: StreamContext) -> None:
    await ctx.input.completed()
    ctx.receipt.mark("input")


async def _grade(ctx: StreamContext, plan: AssessmentPlan) -> tuple[Assessment, dict[str, Any]]:
    """Return the result of the first account that succeeds, and its price and usage."""
    attempts = [_attempt(ctx, plan.request, name, account) for name, account in plan.accounts]
    async with first_success(attempts, ctx.attempts) as (attempt, items):
        *_, result = [item async for item in items if isinstance(item, Assessment)]
    _, winner = plan.accounts[attempts.index(attempt)]
    assert isinstance(winner, AssessmentAccount), "a broken account cannot win"
    won = next(record for record in ctx.attempts if record.outcome == "won")
    return result, unit_price(winner.config.price, won.usage)


def _attempt(
    ctx: StreamContext, request: AssessmentRequest, name: str, account: AssessmentAccount | Broken
) -> Attempt[AssessmentItem]:
    """Return an attempt whose timeouts start when the input ends. The result gets half its duration more."""
    if isinstance(account, Broken):
        return failed_attempt(name, "assess", account.fault)
    metered_input = _MeteredInput(ctx.input)
    return Attempt(
        strategy=name,
        stage="assess",
        vendor=account.platform,
        open=lambda: account.assessor.assess(metered_input, request),
        is_output=lambda item: isinstance(item, Assessment),
        first_output_s=account.config.waits.first_output_s,
        between_s=account.config.waits.between_s,
        hedge=hedge_of(account.config),
        gate=account.gate,
        meter=lambda: Meter(metered_input.billed_seconds),
        price=price_of(account.config),
        clock=partial(_half_of_input_s, ctx.input),
        model=account.config.model,
    )


async def _half_of_input_s(buffer: InputBuffer) -> float:
    await buffer.completed()
    return pcm_seconds(len(buffer), PCM_RATE) / 2


class _MeteredInput:
    """The input as one account reads it, with the amount that was read."""

    def __init__(self, buffer: InputBuffer) -> None:
        self._buffer = buffer
        self._bytes = 0

    async def read(self) -> AsyncGenerator[bytes]:
        """Yield all samples from the first one.

        After an error of the input, this never ends, so that the error is not attributed to the account.
        """
        position = 0
        try:
            async with aclosing(self._buffer.read()) as pieces:
                async for piece in pieces:
                    position += len(piece)
                    self._bytes = max(self._bytes, position)
                    yield piece
        except ServiceError:
            await asyncio.Event().wait()  # Wait until the call is closed.

    def billed_seconds(self) -> int:
        """Return the duration read so far, rounded up to full seconds."""
        return math.ceil(pcm_seconds(self._bytes, PCM_RATE))
