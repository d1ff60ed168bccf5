"""One turn of a conversation: obtain the user's input, generate and speak the answer, store both (§4.17)."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from actors.clients.strategies import NO_OVERRIDES, Broken, SpeechOverrides, Strategy, Voice
from actors.plays import prompt
from actors.plays.answer import Answer
from actors.plays.continuation import Continued, save
from actors.plays.listener import HeardInput, hear, read_text
from actors.plays.plan import TurnPlan, read_history
from actors.plays.records import audio_item, close_turn, open_turn, source, store_attempts, text_item, unit_price
from actors.plays.speaker import Speaker
from actors.runtime.context import Stop, StreamContext
from storage.conversations import turn_rows
from storage.conversations.conversations import Record, RecordStatus
from storage.conversations.turn_rows import TurnOutcome
from storage.objects import extension_of
from streams.audio.audio import wav_header
from streams.events import UserInput
from streams.tasks import background, unless_failed
from streams.wire.errors import ServiceError
from vendors.calls.attempts import Attempt, failed_attempt
from vendors.calls.fallback import AllStrategiesFailed, first_success
from vendors.calls.meter import Meter, estimated_tokens
from vendors.chat.second_try import fitting_reply
from vendors.errors import VendorError
from vendors.protocols import ChatItem, ChatMessage, TextDelta


async def converse(ctx: StreamContext, plan: TurnPlan) -> dict[str, Any]:
    """Play one turn. Return the content of the `end` event."""
    # Until a strategy has won, any of them may be one that continues without readers.
    ctx.outlives_readers = any(isinstance(s, Strategy) and s.config.on_abandon == "drain" for s in plan.strategies)
    async with background(read_history(ctx, plan)) if not plan.new else nullcontext() as history:
        try:
            heard = await _hear(ctx, plan)
            await ctx.emit(UserInput(heard.text))
            past = await history if history is not None else []
        except asyncio.CancelledError:
            await store_attempts(ctx)
            if ctx.stop is Stop.CANCELED:
                return _canceled_early(plan)
            raise
        except BaseException:
            ctx.settled = True
            await store_attempts(ctx)
            raise
        return await Turn(ctx, plan, heard, past).play()


async def continue_turn(ctx: StreamContext, plan: TurnPlan, continued: Continued) -> dict[str, Any]:
    """Play the rest of a turn that another process has begun."""
    ctx.outlives_readers = continued.writer is not None and continued.writer.config.on_abandon == "drain"
    ctx.attempts += continued.attempts()
    return await Turn(ctx, plan, HeardInput(continued.saved.text), (), continued).play()


def _canceled_early(plan: TurnPlan) -> dict[str, Any]:
    """Return the content of `end` for a turn cancelled before a model was asked. Such a turn is not stored."""
    nulls = dict.fromkeys(("record_id", "strategy", "unit_price"))
    return {"conversation_id": plan.conversation_id, **nulls, "finish_reason": "canceled"}


async def _hear(ctx: StreamContext, plan: TurnPlan) -> HeardInput:
    if not plan.spoken:
        return await read_text(ctx)
    return await hear(ctx, plan)


class Turn:
    """One turn after its input is known: generates the answer and stores it, however the turn ends."""

    __slots__ = (
        "_answer",
        "_canceled",
        "_continued",
        "_ctx",
        "_heard",
        "_history",
        "_meter",
        "_plan",
        "_record_id",
        "_speaking",
        "_speech",
    )

    def __init__(
        self,
        ctx: StreamContext,
        plan: TurnPlan,
        heard: HeardInput,
        history: Sequence[Record],
        continued: Continued | None = None,
    ) -> None:
        self._ctx = ctx
        self._plan = plan
        self._heard = heard
        self._history = history
        self._answer = Answer(ctx)
        self._continued = continued
        if continued is not None:
            continued.restore(self._answer)
        self._record_id: int | None = None
        self._canceled = False
        self._meter = Meter()
        """The usage of the attempt that wrote the answer; zero if there is none."""
        self._speech: background[None] | None = None
        self._speaking: asyncio.Task[None] | None = None

    async def play(self) -> dict[str, Any]:
        async with self._opening() as opening:
            try:
                if self._continued is not None:
                    self._history = await self._continued.history(self._ctx, self._plan)
                await self._generate(opening)
            except asyncio.CancelledError:
                self._canceled = self._ctx.stop is Stop.CANCELED
                await self._store("interrupted" if self._canceled else "incomplete", opening)
                if not self._canceled:
                    raise
            except Exception:
                self._ctx.settled = True
                has_failed = self._answer.empty and self._continued is None
                await self._store("failed" if has_failed else "incomplete", opening)
                raise
            else:
                self._ctx.settled = True
                await self._store("complete", opening)
                self._allow_revision()
        return self._end()

    def _allow_revision(self) -> None:
        """Allow the client to truncate the stored answer later.

        Playing the audio takes longer than generating it, so a listener may interrupt after the stream has ended.
        """
        answer, record_id = self._answer, self._record_id
        if answer.speaker is None or not answer.speaker.playback.began or record_id is None:
            return
        database, clock = self._ctx.resources.database, self._ctx.resources.clock
        owner, stream_id = self._ctx.owner, self._ctx.stream_id
        conversation_id = self._plan.conversation_id

        async def revise(heard_ms: int) -> None:
            if (heard := answer.heard_characters(heard_ms)) is None:
                return
            message = answer.message(heard)
            async with database.connection() as conn:
                await turn_rows.interrupt(
                    conn,
                    owner.app_id,
                    conversation_id=conversation_id,
                    record_id=record_id,
                    stream_id=stream_id,
                    message=message,
                    clock_offset_s=clock.offset_s(owner.app_id),
                )

        self._ctx.revise = revise

    def _opening(self) -> AbstractAsyncContextManager[asyncio.Future[int]]:
        """Store the user's message concurrently with the block. The answer is sent only after that succeeded."""
        if self._continued is not None:
            opened: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            opened.set_result(self._continued.saved.record_id)
            return nullcontext(opened)
        if self._heard.audio is None and self._ctx.save is None:
            return nullcontext(self._open([]))
        return background(self._open_and_save(self._heard.audio))

    async def _open_and_save(self, audio: bytes | None) -> int:
        items = [audio_item(await self._store_input_audio(audio), source("user"))] if audio is not None else []
        record_id = await self._open(items)
        if self._ctx.save is not None:
            await self._save(record_id)
        return record_id

    def _open(self, audio_items: list[dict[str, Any]]) -> asyncio.Future[int]:
        message = {"role": "user", "content": [text_item(self._heard.text, source("user")), *audio_items]}
        return open_turn(self._ctx, self._plan.conversation_id, message)

    async def _store_input_audio(self, audio: bytes) -> str:
        mime_type, rate = self._heard.audio_format.mime_type, self._heard.audio_format.sample_rate
        if mime_type == "audio/pcm":
            mime_type, audio = "audio/wav", wav_header(rate, data_bytes=len(audio)) + audio
        key = f"{self._folder}/user.{extension_of(mime_type)}"
        await self._ctx.resources.objects.put(key, audio, content_type=mime_type)
        return key

    @property
    def _folder(self) -> str:
        return f"conversation/{self._plan.conversation_id}/{self._ctx.stream_id}"

    async def _generate(self, opening: asyncio.Future[int]) -> None:
        """Generate the answer. If a strategy breaks off after its first output, try the remaining ones.

        `on_break` of the strategy decides whether they restart or continue the answer.
        """
        remaining: Sequence[Strategy | Broken] = self._plan.strategies
        prefill = ""
        break_error: ServiceError | None = None
        if (continued := self._continued) is not None:
            if continued.saved.finish_reason is not None:
                return
            remaining, prefill, break_error = continued.remaining, continued.text, continued.error
        try:
            while True:
                try:
                    with unless_failed(opening):
                        await self._generate_with(remaining, prefill, opening)
                    break
                except AllStrategiesFailed:
                    if break_error is None:
                        raise
                    raise break_error from None  # Report the break, which is the original failure.
                except VendorError as error:
                    break_error = error
                    remaining, prefill = self._after_break(error)
                    if not prefill:
                        await self._stop_speaking()
                        await self._answer.restart()
            if self._ctx.save is not None:
                await self._save(opening.result(), finished=True)
            if self._speaking is not None and self._answer.speaker is not None:
                self._answer.speaker.finish()
                await self._speaking
        finally:
            break_error = None  # If it is raised, its traceback refers to this frame.
            await self._stop_speaking()

    async def _generate_with(
        self, strategies: Sequence[Strategy | Broken], prefill: str, opening: asyncio.Future[int]
    ) -> None:
        """Write the answer, or continue the answer `prefill`, with the first of `strategies` that succeeds."""
        attempts = [self._attempt(strategy, prefill) for strategy in strategies]
        with self._ctx.receipt.waiting() as wait:
            async with first_success(attempts, self._ctx.attempts) as (attempt, items):
                wait.end()
                self._ctx.receipt.mark("first_token")
                if not opening.done():
                    # Unlike `await opening`, a cancellation of this wait does not cancel `opening`.
                    await asyncio.wait([opening])
                opening.result()
                winner = self._winner(attempt)
                is_first = self._answer.strategy is None
                self._answer.set_writer(winner)
                self._ctx.outlives_readers = winner.config.on_abandon == "drain"
                if is_first:
                    self._start_speaking(winner)
                if self._ctx.save is not None:
                    await self._save(opening.result())
                while not await self._answer.write(items):
                    await self._stop_speaking()
                    await self._answer.restart()
                    self._answer.set_writer(winner)
                    self._start_speaking(winner)

    async def _save(self, record_id: int, *, finished: bool = False) -> None:
        finish_reason = self._answer.finish_reason if finished else None
        await save(
            self._ctx,
            self._plan,
            self._answer,
            text=self._heard.text,
            record_id=record_id,
            finish_reason=finish_reason,
        )

    def _after_break(self, error: VendorError) -> tuple[Sequence[Strategy | Broken], str]:
        """Return the strategies to try after an answer broke off, and the text that they continue.

        The text is empty if the answer starts again. Raises `error` if no strategy may take over.
        """
        broken = self._answer.strategy
        assert broken is not None, "an answer breaks off only after its first output"
        on_break = broken.config.on_break
        number = [strategy.name for strategy in self._plan.strategies].index(broken.name)
        remaining = self._plan.strategies[number + 1 :]
        if on_break == "continue":
            remaining = [s for s in remaining if isinstance(s, Strategy) and s.model.takes_prefill]
        if on_break == "fail" or not remaining:
            raise error
        return remaining, self._answer.received if on_break == "continue" else ""

    def _attempt(self, strategy: Strategy | Broken, prefill: str) -> Attempt[ChatItem]:
        if isinstance(strategy, Broken):
            return failed_attempt(strategy.name, "llm", strategy.fault)
        chat = strategy.config.chat
        messages = prompt.build(
            chat.system_prompt,
            self._plan.params,
            self._history,
            self._heard.text,
            context_tokens=chat.context_tokens,
        )
        if prefill:
            messages.append(ChatMessage("assistant", prefill))
        return Attempt(
            strategy=strategy.name,
            stage="llm",
            vendor=strategy.platform,
            open=lambda: fitting_reply(strategy.model, messages),
            is_output=_is_visible_text,
            first_output_s=chat.waits.first_output_s,
            between_s=chat.waits.between_s,
            hedge=strategy.hedge,
            gate=strategy.gate,
            meter=lambda: Meter(lambda: sum(estimated_tokens(message.content) for message in messages)),
            price=strategy.price,
            model=chat.model,
        )

    def _winner(self, attempt: Attempt[ChatItem]) -> Strategy:
        return next(
            strategy
            for strategy in self._plan.strategies
            if isinstance(strategy, Strategy) and strategy.name == attempt.strategy
        )

    def _start_speaking(self, winner: Strategy) -> None:
        """Start a speaker that tries the winning strategy's voice first, then those of the other strategies.

        If the winning strategy has no voice, the answer is text only. After a restart, the voice stays the same.
        """
        previous, self._answer.speaker = self._answer.speaker, None
        if winner.config.speech is None:
            return
        others = [s for s in self._plan.strategies if isinstance(s, Strategy) and s is not winner]
        names = [s.config.speech for s in (winner, *others) if s.config.speech is not None]
        candidates = [(name, self._voice(name)) for name in dict.fromkeys(names)]
        speaker = self._answer.speaker = Speaker(
            self._ctx,
            [previous.chosen] if previous is not None and previous.chosen is not None else candidates,
            folder=self._folder,
            language=self._plan.target_language_code,
            merge_characters=winner.config.sentence_characters,
            concurrency=winner.config.voices_at_once,
        )
        self._speech = background(speaker.run())
        self._speaking = self._speech.start()

    async def _stop_speaking(self) -> None:
        if self._speech is not None:
            await self._speech.stop()
            self._speech = self._speaking = None

    def _voice(self, name: str) -> Voice | ServiceError:
        settings = SpeechOverrides(voice=self._plan.voice) if self._plan.voice else NO_OVERRIDES
        overrides = {"vendor_a_audio": settings}  # §4.17: `voice` applies to one speech vendor only.
        try:
            return self._ctx.resources.strategies.voice(
                self._ctx.owner.app_id, name, overrides, language=self._plan.target_language_code
            )
        except ServiceError as error:
            return error

    async def _store(self, status: RecordStatus, opening: asyncio.Future[int]) -> None:
        """Store the answer so far, or only the attempts if the record itself could not be created."""
        winner = self._answer.strategy.name if self._answer.strategy else ""
        for attempt in self._ctx.attempts:
            if attempt.stage == "llm" and attempt.strategy == winner:
                self._meter = attempt.meter
        try:
            self._record_id = await opening
        except ServiceError:
            await store_attempts(self._ctx)
            return
        self._ctx.error_extra["record_id"] = self._record_id
        meter = self._meter
        answered = TurnOutcome(
            status=status,
            strategy=winner,
            message=self._answer.message(self._answer.heard_characters(self._ctx.heard_ms)),
            input_token=meter.usage.input_token,
            output_token=meter.usage.output_token,
            tokens_estimated=meter.source == "estimated",
        )
        await close_turn(self._ctx, self._plan.conversation_id, self._record_id, answered)

    def _end(self) -> dict[str, Any]:
        strategy, speaker = self._answer.strategy, self._answer.speaker
        content: dict[str, Any] = {
            "conversation_id": self._plan.conversation_id,
            "record_id": self._record_id,
            "strategy": strategy.name if strategy else None,
            "finish_reason": "canceled" if self._canceled else self._answer.finish_reason,
            "unit_price": unit_price(strategy.config.chat.price, self._meter.usage) if strategy else None,
        }
        if speaker is not None and speaker.failure is not None:
            content["speech"] = speaker.failure
        return content


def _is_visible_text(item: ChatItem) -> bool:
    return isinstance(item, TextDelta) and bool(item.text.replace("\0", "").strip())
