"""A turn of a conversation: what the user said, the answer as it is written and spoken, the record (§4.17)."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

from actors import prompt
from actors.context import Stop, StreamContext
from actors.listener import PCM_RATE, Heard, hear, read_text
from actors.records import audio_item, close_turn, keep_attempts, open_turn, source, text_item, unit_price
from actors.speaker import Speaker
from actors.strategies import NO_WISH, Broken, SpeechWish, Strategy, Voice, hedge_of, price_of
from storage import conversations
from storage.conversations import Answered, Record, RecordStatus
from storage.objects import extension_of
from streams.audio import wav_header
from streams.events import AssistantOutputChunk, AssistantOutputContentSegment, UserInput
from streams.paragraphs import Close, Paragraphs, Piece
from streams.tasks import background
from streams.wire.errors import ServiceError
from vendors.fallback import Attempt, failed_attempt, first_success
from vendors.meter import Meter, estimated_tokens
from vendors.protocols import ChatItem, Finish, TextDelta

_HISTORY_RECORDS = 200

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """A request that was found good: its strategies are looked up, its conversation is the caller's."""

    conversation_id: str
    new: bool
    spoken: bool
    strategies: Sequence[Strategy | Broken]
    language_code: str
    target_language_code: str
    voice: str | None
    stt_prompt: str | None
    params: Mapping[str, Any]


async def converse(ctx: StreamContext, plan: TurnPlan) -> dict[str, Any]:
    """Play one turn; returns what `end` tells."""
    async with background(_history(ctx, plan)) as history:
        try:
            heard = await _hear(ctx, plan)
        except BaseException:
            await keep_attempts(ctx)
            raise
        await ctx.emit(UserInput(heard.text))
        return await Turn(ctx, plan, heard).play(await history)


async def _hear(ctx: StreamContext, plan: TurnPlan) -> Heard:
    if not plan.spoken:
        return await read_text(ctx)
    return await hear(ctx, plan.strategies, language_code=plan.language_code, prompt=plan.stt_prompt)


async def _history(ctx: StreamContext, plan: TurnPlan) -> list[Record]:
    if plan.new:
        return []
    async with ctx.resources.database.connection() as conn:
        return await conversations.page(
            conn, ctx.owner.app_id, plan.conversation_id, newest=2**31 - 1, size=_HISTORY_RECORDS
        )


class Turn:
    """The answer of one turn: what was said of it so far, and how it is kept however it ends."""

    def __init__(self, ctx: StreamContext, plan: TurnPlan, heard: Heard) -> None:
        self._ctx = ctx
        self._plan = plan
        self._heard = heard
        self._record_id: int | None = None
        self._strategy: Strategy | None = None
        self._speaker: Speaker | None = None
        self._segments: list[Close] = []
        self._paragraphs = Paragraphs("\n\n")
        self._finish_reason = "stop"

    async def play(self, history: Sequence[Record]) -> dict[str, Any]:
        async with background(self._open()) as opening:
            try:
                await self._answer(history, opening)
            except asyncio.CancelledError:
                canceled = self._ctx.stop is Stop.CANCELED
                await self._keep("interrupted" if canceled else "incomplete", opening)
                if not canceled:
                    raise
                self._finish_reason = "canceled"
            except ServiceError as error:
                await self._keep("incomplete" if self._said() else "failed", opening)
                raise self._told(error) from error
            else:
                await self._keep("complete", opening)
        return self._end()

    async def _open(self) -> int:
        """Keep what the user said; an answer is sent only once this has happened."""
        origin = source("user")
        items = [text_item(self._heard.text, origin)]
        if self._heard.audio is not None:
            items.append(audio_item(await self._keep_heard(self._heard.audio), origin))
        message = {"role": "user", "content": items}
        return await open_turn(self._ctx, self._plan.conversation_id, message)

    async def _keep_heard(self, audio: bytes) -> str:
        mime_type = self._heard.audio_format.mime_type
        if mime_type == "audio/pcm":
            mime_type, audio = "audio/wav", wav_header(PCM_RATE, data_bytes=len(audio)) + audio
        key = f"{self._folder}/user.{extension_of(mime_type)}"
        await self._ctx.resources.objects.put(key, audio, content_type=mime_type)
        return key

    @property
    def _folder(self) -> str:
        return f"conversation/{self._plan.conversation_id}/{self._ctx.stream_id}"

    async def _answer(self, history: Sequence[Record], opening: asyncio.Task[int]) -> None:
        attempts = [self._attempt(strategy, history) for strategy in self._plan.strategies]
        async with AsyncExitStack() as stack:
            with self._ctx.receipt.waiting():
                attempt, items = await _unless_failed(
                    opening, stack.enter_async_context(first_success(attempts, self._ctx.attempts))
                )
            self._ctx.receipt.mark("first_token")
            await opening
            self._strategy = self._winner(attempt)
            self._paragraphs = Paragraphs(self._strategy.config.paragraph_delimiter)
            speaker = self._speaker = self._open_speaker(self._strategy)
            speaking = await stack.enter_async_context(background(speaker.run())) if speaker else None
            await self._write(items)
            if speaker is not None and speaking is not None:
                speaker.finish()
                await speaking

    async def _write(self, items: AsyncIterator[ChatItem]) -> None:
        async for item in items:
            match item:
                case TextDelta(text):
                    for piece in self._paragraphs.feed(text.replace("\0", "")):
                        await self._give(piece)
                case Finish(reason):
                    self._finish_reason = reason
        for piece in self._paragraphs.finish():
            await self._give(piece)

    async def _give(self, piece: Piece | Close) -> None:
        if isinstance(piece, Piece):
            self._ctx.receipt.first_output()
            self._ctx.receipt.mark("first_text")
            await self._ctx.emit(AssistantOutputChunk(piece.index, piece.text))
            if self._speaker is not None:
                self._speaker.feed(piece.index, piece.text)
        else:
            self._segments.append(piece)
            await self._ctx.emit(AssistantOutputContentSegment(piece.index, piece.text))
            if self._speaker is not None:
                self._speaker.close(piece.index)

    def _attempt(self, strategy: Strategy | Broken, history: Sequence[Record]) -> Attempt[ChatItem]:
        if isinstance(strategy, Broken):
            return failed_attempt(strategy.name, "llm", strategy.fault)
        chat = strategy.config.chat
        messages = prompt.build(
            chat.system_prompt,
            self._plan.params,
            history,
            self._heard.text,
            context_tokens=chat.context_tokens,
        )
        asked = sum(estimated_tokens(message.content) for message in messages)
        return Attempt(
            strategy=strategy.name,
            stage="llm",
            vendor=strategy.platform,
            open=lambda: strategy.model.reply(messages),
            is_output=lambda item: isinstance(item, TextDelta) and bool(item.text),
            first_output_s=chat.waits.first_output_s,
            between_s=chat.waits.between_s,
            hedge=hedge_of(chat),
            gate=strategy.gate,
            meter=lambda: Meter(asked),
            price=price_of(chat),
        )

    def _winner(self, attempt: Attempt[ChatItem]) -> Strategy:
        return next(
            strategy
            for strategy in self._plan.strategies
            if isinstance(strategy, Strategy) and strategy.name == attempt.strategy
        )

    def _open_speaker(self, winner: Strategy) -> Speaker | None:
        """The winning strategy's voice, then those of the others; none where the winner has none."""
        if winner.config.speech is None:
            return None
        others = [s for s in self._plan.strategies if isinstance(s, Strategy) and s is not winner]
        names = [s.config.speech for s in (winner, *others) if s.config.speech is not None]
        return Speaker(
            self._ctx,
            [(name, self._voice(name)) for name in dict.fromkeys(names)],
            folder=self._folder,
            language=self._plan.target_language_code,
            merge_characters=winner.config.sentence_characters,
            at_once=winner.config.voices_at_once,
        )

    def _voice(self, name: str) -> Voice | ServiceError:
        wish = SpeechWish(voice=self._plan.voice) if self._plan.voice else NO_WISH
        wishes = {"vendor_a_audio": wish}  # §4.17: `voice` is for one speech vendor
        try:
            return self._ctx.resources.strategies.voice(
                self._ctx.owner.app_id, name, wishes, language=self._plan.target_language_code
            )
        except ServiceError as error:
            return error

    def _said(self) -> str:
        return "".join(segment.text for segment in self._segments) + self._paragraphs.open_text

    async def _keep(self, status: RecordStatus, opening: asyncio.Task[int]) -> None:
        """Store the answer as far as it was given; nothing where the record itself could not be."""
        try:
            self._record_id = await opening
        except ServiceError:
            await keep_attempts(self._ctx)
            return
        meter = self._meter()
        answered = Answered(
            status=status,
            strategy=self._strategy.name if self._strategy else "",
            message={"role": "assistant", "content": self._content()} if self._said() else None,
            input_token=meter.usage.input_token,
            output_token=meter.usage.output_token,
            tokens_estimated=meter.source == "estimated",
        )
        await close_turn(self._ctx, self._plan.conversation_id, self._record_id, answered)

    def _content(self) -> list[dict[str, Any]]:
        assert self._strategy is not None, "what was said, somebody said"
        origin = source(self._strategy.platform, self._strategy.config.chat.model)
        delimiter = self._strategy.config.paragraph_delimiter
        texts = [(segment.index, segment.text) for segment in self._segments]
        if self._paragraphs.open_text:
            texts.append((self._paragraphs.open_index, self._paragraphs.open_text))
        items: list[dict[str, Any]] = []
        for index, text in texts:
            last = index == texts[-1][0]
            items.append(text_item(text, origin, delimiter="" if last else delimiter))
            if self._speaker and self._speaker.chosen and (kept := self._speaker.stored.get(index)):
                voice = self._speaker.chosen[1]
                spoken_by = source(voice.platform, voice.config.model)
                items.append(audio_item(kept.audio_key, spoken_by, viseme_key=kept.viseme_key))
        return items

    def _meter(self) -> Meter:
        """Of the attempt whose words the user got; nothing was used where there is none."""
        winner = self._strategy.name if self._strategy else None
        asked = [account for account in self._ctx.attempts if account.stage == "llm"]
        return next((account.meter for account in reversed(asked) if account.strategy == winner), Meter())

    def _told(self, error: ServiceError) -> ServiceError:
        if self._record_id is not None:
            error.extra["record_id"] = self._record_id
        return error

    def _end(self) -> dict[str, Any]:
        price = self._strategy.config.chat.price if self._strategy else None
        told: dict[str, Any] = {
            "conversation_id": self._plan.conversation_id,
            "record_id": self._record_id,
            "strategy": self._strategy.name if self._strategy else None,
            "finish_reason": self._finish_reason,
            "unit_price": unit_price(price, self._meter().usage) if price else None,
        }
        if self._speaker is not None and self._speaker.failure is not None:
            told["speech"] = self._speaker.failure
        return told


async def _unless_failed(opening: asyncio.Task[int], asking: Coroutine[Any, Any, Item]) -> Item:
    """What `asking` gives; it is cut as soon as the user's words turn out not to be kept."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as cut:

            def opened(task: asyncio.Task[int]) -> None:
                if not task.cancelled() and task.exception() is not None:
                    cut.reschedule(loop.time())

            opening.add_done_callback(opened)
            try:
                return await asking
            finally:
                opening.remove_done_callback(opened)
    except TimeoutError:
        await opening
        raise
