"""Judge a soak by its observations and samples. This module does no I/O."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bench.soak.observations import AcknowledgedTurn, Answer, Stream
from bench.soak.records import Key, Leftovers, Record, lost_turns
from bench.soak.samples import Window
from bench.soak.schedule import RECOVERY_S, Disturbances, Target
from bench.soak.vendor_faults import VendorFaults
from streams.wire.codec import loads

GROWTH = 0.05
_STORES: tuple[Target, ...] = ("PostgreSQL", "Valkey")
_VENDOR_ERRORS = frozenset({"error all_strategies_failed", "error backend_unavailable"})
_DRAINED = "backend_unavailable: the server is draining"
_HARMLESS_WITHOUT_A_STORE = frozenset({"process.not_replaced", "store.unavailable"})
"""Errors that do not count as misses while a store is unavailable.

The outage itself is one.
A new process needs both stores to become ready. Until it is ready, the old process continues.
"""
_REFUSALS = frozenset({429, 502, 503})
_DETAIL_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """Something unusual. With `miss`, it is a failure. `at_s` counts from the beginning of the load."""

    what: str
    at_s: float
    miss: bool = True
    during: Sequence[str] = ()
    """The disturbances at that time, such as `Valkey kill`."""
    stream_id: str = ""
    request_id: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    what: str
    seen: str
    misses: int


@dataclass(slots=True)
class Judged:
    verdicts: list[Verdict] = field(default_factory=list)
    anomalies: list[Anomaly] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not any(verdict.misses for verdict in self.verdicts)

    def add(self, what: str, seen: str, anomalies: Sequence[Anomaly]) -> None:
        """Add a verdict. Its misses are the anomalies with `miss`."""
        self.verdicts.append(Verdict(what, seen, sum(anomaly.miss for anomaly in anomalies)))
        self.anomalies += anomalies


def stream_anomalies(streams: Iterable[Stream], disturbances: Disturbances) -> list[Anomaly]:
    """Return streams with a missing or second terminal event, a gap, a wrong digest or a duplicate of their key."""
    anomalies = []
    for stream in streams:
        wrong = [] if stream.outcome else ["no terminal event"]
        wrong += stream.faults
        # Streams also start while Valkey is unavailable, without a check of their idempotency keys.
        if stream.first_stream_id and not disturbances.of(["Valkey"], stream.begin_s, stream.end_s):
            wrong.append("a repeated request with the same key began another stream")
        anomalies += [_of_stream(stream, disturbances, what=what) for what in wrong]
    return anomalies


def error_anomalies(streams: Iterable[Stream], disturbances: Disturbances, faults: VendorFaults) -> list[Anomaly]:
    """Return streams that ended with `error` or whose response broke off.

    Errors that neither a failing call of the stream nor an unavailable store explains are misses. So are responses
    that broke off while both stores were available. The replacement of processes explains neither.
    """
    anomalies = []
    for stream in streams:
        if stream.outcome not in {"", "end"}:
            what, miss = (
                f"ended with {stream.outcome}: {stream.message}",
                not _explained(stream, disturbances, faults),
            )
            anomalies.append(_of_stream(stream, disturbances, what=what, miss=miss))
        if stream.outcome and stream.cut_at_s:
            miss = not all(disturbances.of(_STORES, at_s, at_s) for at_s in stream.cut_at_s)
            anomalies.append(_of_stream(stream, disturbances, what="response broke off, stream resumed", miss=miss))
    return anomalies


def _of_stream(stream: Stream, disturbances: Disturbances, *, what: str, miss: bool = True) -> Anomaly:
    detail = f"{stream.kind} from {stream.begin_s:.1f} s, {len(stream.cut_at_s)} cuts, {stream.resumes} resumes"
    return Anomaly(
        what=what,
        at_s=round(stream.end_s, 1),
        miss=miss,
        during=disturbances.names(stream.begin_s, stream.end_s),
        stream_id=stream.stream_id,
        request_id=stream.request_id,
        detail=f"{detail}, first stream {stream.first_stream_id}" if stream.first_stream_id else detail,
    )


def _explained(stream: Stream, disturbances: Disturbances, faults: VendorFaults) -> bool:
    """Return whether a failing call of the stream or an unavailable store explains its error."""
    from_vendor = stream.outcome in _VENDOR_ERRORS and not stream.unnumbered and stream.message != _DRAINED
    if from_vendor and faults.explains(stream):
        return True
    return stream.outcome != "error internal" and disturbances.of(_STORES, stream.begin_s, stream.end_s)


def why_allowed(answer: Answer, disturbances: Disturbances) -> str:
    """Return why the server may refuse a request with this response; an empty string if it may not.

    Allowed are error envelopes while a store is unavailable: 429, 502, 503, and 409 if a turn could not be
    released. The replacement of processes is not a reason, because a process that is being replaced serves its
    connections.
    """
    if not answer.error_type:
        return ""
    if disturbances.of(_STORES, answer.begin_s, answer.end_s):
        if answer.status in _REFUSALS:
            return "a store was unavailable"
        if answer.status == 409:
            return "a store was unavailable and the turn was still locked"
    return ""


def answer_anomalies(answers: Iterable[Answer], disturbances: Disturbances) -> list[Anomaly]:
    """Return all responses that are not streams. Those that are not allowed are misses."""
    return [
        Anomaly(
            what=f"{answer.operation}: {answer.status or 'no response'} {answer.error_type}".rstrip(),
            at_s=round(answer.end_s, 1),
            miss=not why_allowed(answer, disturbances),
            during=disturbances.names(answer.begin_s, answer.end_s),
            stream_id=answer.stream_id,
            request_id=answer.request_id,
            detail=answer.detail,
        )
        for answer in answers
    ]


def record_anomalies(
    turns: Iterable[AcknowledgedTurn], kept: Mapping[Key, Record], disturbances: Disturbances, *, where: str
) -> list[Anomaly]:
    """Return the acknowledged turns that differ from what `where` (a store or the history) contains."""
    return [
        Anomaly(
            what=f"{where}: {wrong}",
            at_s=round(turn.at_s, 1),
            during=disturbances.names(turn.at_s - RECOVERY_S, turn.at_s),
            stream_id=turn.stream_id,
            request_id=turn.request_id,
            detail=f"conversation {turn.conversation_id}, record {turn.record_id}",
        )
        for wrong, lost in lost_turns(turns, kept).items()
        for turn in lost
    ]


def leftover_anomalies(leftovers: Leftovers, *, at_s: float) -> list[Anomaly]:
    """Return what ended turns have left behind."""
    left = [
        ("a record is left running", f"conversation {conversation_id}, record {record_id}")
        for conversation_id, record_id in leftovers.running
    ]
    left += [("entries are left in a retry queue", str(leftovers.queued))] * bool(leftovers.queued)
    left += [("a turn is left in Valkey", key) for key in leftovers.turns]
    left += [("a slot is left in Valkey", slot) for slot in leftovers.slots]
    return [Anomaly(what=what, at_s=at_s, detail=detail) for what, detail in left]


_KINDS: Mapping[str, Callable[[Window], float]] = {
    "children": lambda window: window.children_bytes,
    "parent": lambda window: window.parent_bytes,
    "long-lived process": lambda window: window.long_lived_bytes,
}


def memory_anomalies(windows: Sequence[Window]) -> list[Anomaly]:
    """Return growth that is excessive in a window after the second. The first one is the warm-up."""
    if len(windows) < 3:
        end_s = windows[-1].end_s if windows else 0
        return [Anomaly(what="memory: fewer than three windows were measured", at_s=end_s)]
    first, anomalies = windows[1], []
    for name, size_of in _KINDS.items():
        largest = max(windows[2:], key=size_of)
        before, after = size_of(first), size_of(largest)
        if before <= 0 or after > before * (1 + GROWTH):
            detail = f"{_size_at(first, before)}, {_size_at(largest, after)}"
            anomalies.append(Anomaly(what=f"memory of the {name} grew", at_s=largest.end_s, detail=detail))
    return anomalies


def _size_at(window: Window, size_bytes: float) -> str:
    return f"{size_bytes / 2**20:.1f} MiB at {window.end_s / 60:.0f} min"


def log_anomalies(
    lines: Iterable[bytes], disturbances: Disturbances, *, begun: datetime
) -> tuple[list[Anomaly], Counter[str]]:
    """Return the errors in the server's log as misses, and the number of events above `info` by level and name.

    `begun` is when the load began. A line without a time gets that of the previous line.
    """
    anomalies, counts, at_s = [], Counter[str](), 0.0
    for raw in lines:
        line: dict[str, Any] = {}
        if b'"level":"info"' in raw:
            continue
        try:
            line = loads(raw)
            level, event = line["level"], line["event"]
            at_s = round((datetime.fromisoformat(line["timestamp"]) - begun).total_seconds(), 1)
        except (ValueError, KeyError, TypeError):
            level, event = "error", "a line that is not JSON"
        counts[f"{level} {event}"] += 1
        if event in _HARMLESS_WITHOUT_A_STORE and disturbances.of(_STORES, at_s, at_s):
            continue
        if level in {"error", "critical"}:
            anomalies.append(
                Anomaly(
                    what=f"server's log: {event}",
                    at_s=at_s,
                    during=disturbances.names(at_s, at_s),
                    stream_id=str(line.get("stream_id", "")),
                    request_id=str(line.get("request_id", "")),
                    detail=raw.decode(errors="replace").strip()[:_DETAIL_CHARACTERS],
                )
            )
    return anomalies, counts
