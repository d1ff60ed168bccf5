"""Converts a stream that has ended to spans, from its latency receipt and its attempts.

Spans never contain text of users or models.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from actors.runtime.context import StreamContext
from vendors.calls.attempts import AttemptRecord

_AFTER: Mapping[str, Sequence[str]] = {
    "admission": (),
    "input": (),
    "stt": ("input",),
    "first_token": ("stt", "input"),
    "first_text": ("first_token",),
    "first_sentence": ("first_text",),
    "first_audio": ("first_sentence", "input"),
}
"""The stages at whose end a stage begins. The first one that was reached counts, or else the request's start."""
_NOT_FAILED = frozenset({"end", "canceled", "invalid_parameter", "invalid_operation"})


@dataclass(frozen=True, slots=True)
class Span:
    """A span. Times are in nanoseconds since the Unix epoch."""

    name: str
    begin_ns: int
    end_ns: int
    attributes: Mapping[str, str | int]
    kind: Literal["stream", "stage", "attempt"] = "stage"
    failed: bool = False
    first_output_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """The span of a stream with child spans for stages and attempts. `parent` is the request's `traceparent`."""

    parent: str
    root: Span
    children: Sequence[Span]


def trace_of(ctx: StreamContext, kind: str, outcome: str, *, parent: str) -> Trace:
    """Return the trace of a stream. It holds no reference to `ctx`."""
    begin_ns = time.time_ns() - round((time.monotonic() - ctx.receipt.arrived) * 1e9)
    marks = dict(ctx.receipt.latency_ms)
    overhead_ms = marks.pop("overhead", None)
    total = marks.pop("total", max(marks.values(), default=0))
    attributes: dict[str, str | int] = {
        "parley.stream_id": ctx.stream_id,
        "parley.request_id": ctx.request_id,
        "parley.app": ctx.owner.app_id,
        "parley.kind": kind,
        "parley.outcome": outcome,
    }
    if overhead_ms is not None:
        attributes["parley.overhead_ms"] = overhead_ms
    failed = outcome not in _NOT_FAILED
    root = Span(kind, begin_ns, _later(begin_ns, total), attributes, "stream", failed=failed)
    attempts = [_attempt(record, begin_ns, ctx.receipt.arrived) for record in ctx.attempts]
    return Trace(parent, root, [*_stages(marks, total, begin_ns), *attempts])


def _stages(marks: Mapping[str, int], total: int, begin_ns: int) -> Iterator[Span]:
    for stage, before in _AFTER.items():
        if stage in marks:
            since = next((marks[name] for name in before if name in marks), 0)
            yield Span(stage, _later(begin_ns, min(since, marks[stage])), _later(begin_ns, marks[stage]), {})
    last = max(marks.values(), default=0)
    yield Span("end", _later(begin_ns, min(last, total)), _later(begin_ns, total), {})


def _attempt(record: AttemptRecord, begin_ns: int, arrived: float) -> Span:
    begun_ns = begin_ns + round((record.started_at - arrived) * 1e9)
    attributes: dict[str, str | int] = {
        "parley.strategy": record.strategy,
        "parley.vendor": record.vendor,
        "parley.outcome": record.outcome,
    }
    if record.failure is not None:
        attributes["error.type"] = record.failure.error_type
    return Span(
        f"attempt {record.stage}",
        begun_ns,
        _later(begun_ns, record.elapsed_ms),
        attributes,
        "attempt",
        failed=record.outcome == "failed",
        first_output_ns=None if record.first_output_ms is None else _later(begun_ns, record.first_output_ms),
    )


def _later(begin_ns: int, after_ms: int) -> int:
    return begin_ns + after_ms * 1_000_000
