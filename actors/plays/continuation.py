"""What a durable turn saves, and how another process rebuilds it from that and the log."""

import asyncio
from base64 import b64decode
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal, Self

import structlog

from actors.clients.strategies import Broken, Strategy
from actors.plays.answer import Answer
from actors.plays.plan import TurnPlan, read_history
from actors.runtime.context import StreamContext
from actors.runtime.receipt import Receipt
from storage.conversations.conversations import Record
from streams.events import (
    AssistantOutputAudioChunk,
    AssistantOutputChunk,
    AssistantOutputContentSegment,
    AssistantOutputRestart,
)
from streams.wire.codec import dumps, loads
from streams.wire.errors import ServiceError, StoreError, Unavailable
from streams.wire.model import Model
from vendors.calls.attempts import AttemptRecord, Failure, Outcome, Stage
from vendors.calls.meter import Meter, UnitPrice
from vendors.protocols import FinishReason, TextDelta, Usage

log = structlog.get_logger()


class SavedAttempt(Model):
    """An `AttemptRecord`."""

    strategy: str
    stage: Stage
    vendor: str
    price: tuple[str, str]
    accepted: bool
    outcome: Outcome
    failure: Failure | None
    first_output_ms: int | None
    elapsed_ms: int
    usage: tuple[int, int]
    usage_source: Literal["vendor", "estimated"]
    model: str = ""

    @classmethod
    def of_record(cls, record: AttemptRecord) -> Self:
        usage = record.meter.usage
        return cls(
            strategy=record.strategy,
            stage=record.stage,
            vendor=record.vendor,
            price=(str(record.price.input), str(record.price.output)),
            accepted=record.accepted,
            outcome=record.outcome,
            failure=record.failure,
            first_output_ms=record.first_output_ms,
            elapsed_ms=record.elapsed_ms,
            usage=(usage.input_token, usage.output_token),
            usage_source=record.meter.source,
            model=record.model,
        )

    def record(self) -> AttemptRecord:
        return AttemptRecord(
            self.strategy,
            self.stage,
            self.vendor,
            Meter.restored(Usage(*self.usage), self.usage_source),
            UnitPrice(*map(Decimal, self.price)),
            accepted=self.accepted,
            outcome=self.outcome,
            failure=self.failure,
            first_output_ms=self.first_output_ms,
            elapsed_ms=self.elapsed_ms,
            model=self.model,
            ended=True,
        )


class SavedTurn(Model):
    """A turn whose input is stored. It is saved again when its answer begins, and when that is complete."""

    process: str
    """The process that has saved it, which is that of the record if later ones died before they took it over."""
    request_id: str
    session: str | None
    key: tuple[str, str] | None
    """The `Idempotency-Key` and the fingerprint of the request."""
    conversation_id: str
    record_id: int
    strategies: list[str]
    language_code: str
    target_language_code: str
    voice: str | None
    params: dict[str, Any]
    text: str
    """The user's input."""
    began_ms: int
    """The time at which the request arrived."""
    latency_ms: dict[str, int]
    writer: str | None
    """The strategy that writes the answer; `None` before its first word."""
    before: int
    """The length of the text that earlier strategies have written."""
    delimiter: str
    """The delimiter of paragraphs."""
    attempts: list[SavedAttempt]
    finish_reason: FinishReason | None = None
    """Set if the answer is complete, so that it only has to be stored."""
    continues: bool = True
    """Whether another process may continue the answer. Otherwise it only stores what was said."""


def successors(strategies: Sequence[Strategy | Broken], writer: Strategy | None) -> list[Strategy | Broken]:
    """Return the strategies that may continue an answer of `writer` in another process, that one included.

    Unlike after a break, `writer` is tried again: not its vendor has failed, but our process.
    """
    if writer is None or writer.config.on_break != "continue":
        return []
    number = [strategy.name for strategy in strategies].index(writer.name)
    return [s for s in strategies[number:] if isinstance(s, Strategy) and s.model.takes_prefill]


def process_ended() -> ServiceError:
    return Unavailable("the process that ran the stream has ended")


class Continued:
    """An answer that another process has begun: its text so far, and who may continue it."""

    def __init__(
        self,
        saved: SavedTurn,
        strategies: Sequence[Strategy | Broken],
        said: "SaidText",
        *,
        refused: ServiceError | None = None,
    ) -> None:
        """`refused`: why the answer must not be continued, although it could be."""
        self.saved = saved
        self.error = refused or process_ended()
        """The error of the stream if no strategy can continue it."""
        writers = (s for s in strategies if isinstance(s, Strategy) and s.name == saved.writer)
        self.writer = next(writers, None)
        may_continue = saved.continues and refused is None
        self.remaining = successors(strategies, self.writer) if may_continue else []
        self._said = said

    @property
    def text(self) -> str:
        return self._said.text(self.saved.delimiter, is_complete=self.saved.finish_reason is not None)

    async def history(self, ctx: StreamContext, plan: TurnPlan) -> Sequence[Record]:
        """Return the earlier records, if a model has to read them. Raises `error` if no model may continue."""
        await asyncio.sleep(0)  # The stream may have been cancelled before its task began.
        if self.saved.finish_reason is not None:
            return ()
        if not self.remaining:
            raise self.error
        return await read_history(ctx, plan, before=self.saved.record_id)

    def restore(self, answer: Answer) -> None:
        """Set the state that `answer` had in the other process."""
        if self.writer is None:
            return
        answer.resume(self.writer, self._said.segments, self._said.open_text, self.text)
        if self.saved.finish_reason is not None:
            answer.finish_reason = self.saved.finish_reason

    def attempts(self) -> list[AttemptRecord]:
        """Return the records of the other process. Its last call has failed, unless the answer is complete.

        Its usage is what the model has written, as far as it was sent.
        """
        records = [attempt.record() for attempt in self.saved.attempts]
        calls = [r for r in records if r.stage == "llm" and self.saved.writer in (r.strategy, None)]
        if calls and self.saved.finish_reason is None:
            record, error = calls[-1], process_ended()
            record.meter.observe(TextDelta(self.text[self.saved.before :]))
            record.outcome, record.failure = "failed", Failure(error.error_type, str(error), True, None)  # noqa: FBT003
        return records


class SaidText:
    """The text of an answer, read from the frames of its events. The receipt gets the digest of their output."""

    def __init__(self, receipt: Receipt, *, began_ms: int) -> None:
        self._began_ms = began_ms
        self.segments: list[AssistantOutputContentSegment] = []
        self.open_text = ""
        self._receipt = receipt

    def read(self, frame: bytes) -> None:
        """Read one frame."""
        _, name, data = frame.rstrip(b"\n").split(b"\n")
        event = loads(data.removeprefix(b"data: "))
        content = event["content"]
        match name.removeprefix(b"event: ").decode():
            case AssistantOutputChunk.name:
                self.open_text += content["text"]
                self._receipt.mark_earlier("first_text", event["timestamp"] - self._began_ms)
                self._receipt.add_output(content["text"])
            case AssistantOutputContentSegment.name:
                self.segments.append(AssistantOutputContentSegment(content["index"], content["text"]))
                self.open_text = ""
            case AssistantOutputRestart.name:
                self.segments, self.open_text = [], ""
            case AssistantOutputAudioChunk.name:
                self._receipt.add_output(b64decode(content["audio"]))

    def text(self, delimiter: str, *, is_complete: bool) -> str:
        """Return the text as the model wrote it. Blank paragraphs and text that was held back are missing."""
        paragraphs = [segment.text for segment in self.segments]
        return delimiter.join(paragraphs if is_complete else [*paragraphs, self.open_text])


async def save(
    ctx: StreamContext,
    plan: TurnPlan,
    answer: Answer,
    *,
    text: str,
    record_id: int,
    finish_reason: FinishReason | None = None,
) -> None:
    """Save what another process needs to continue the answer, or at least to store what was said, if anything.

    A spoken answer is not continued: the audio that was sent does not end where the text ends. If Valkey is
    unavailable, the stream continues, and only its end is missing if this process dies.
    """
    assert ctx.save is not None, "only durable streams are saved"
    writer, session, is_spoken = answer.strategy, ctx.session, answer.speaker is not None
    value = dumps(
        SavedTurn(
            process=ctx.resources.heartbeat.process,
            request_id=ctx.request_id,
            session=session.digest if session is not None else None,
            key=ctx.idempotency_key,
            conversation_id=plan.conversation_id,
            record_id=record_id,
            strategies=[strategy.name for strategy in plan.strategies],
            language_code=plan.language_code,
            target_language_code=plan.target_language_code,
            voice=plan.voice,
            params=dict(plan.params),
            text=text,
            began_ms=ctx.arrived_ms(),
            latency_ms=ctx.receipt.latency_ms,
            writer=writer.name if writer is not None else None,
            before=len(answer.received),
            delimiter=answer.delimiter,
            attempts=[SavedAttempt.of_record(record) for record in ctx.attempts],
            finish_reason=None if is_spoken else finish_reason,
            continues=not is_spoken and bool(successors(plan.strategies, writer)),
        ).model_dump(mode="json")
    )
    try:
        await ctx.save(value)
    except StoreError as error:
        log.warning("stream.not_saved", stream_id=ctx.stream_id, error=str(error))
