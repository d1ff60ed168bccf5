"""The verdict about a scenario: streams that were lost, answered twice or ended with their node, and errors."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.nodes.run import Run
from bench.nodes.scenarios import VICTIM
from bench.soak.observations import Stream

_VICTIM = f"parley{VICTIM + 1}"
_BROKEN = {0, 502}
"""No response, and the proxy's answer if a node ends without an answer."""
_LONGEST_REQUEST_S = 3


@dataclass(slots=True)
class Judged:
    """Counts and misses. `ended_with_node`: streams of the killed or cut-off node that ended with `error`.

    `cut`: requests that the killed node had received, so that the proxy must not repeat them.
    """

    run: Run
    whole: int = 0
    resumed: int = 0
    ended_with_node: int = 0
    cut: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    refused: int = 0
    """Stream requests that were answered with 503 and `Retry-After`, and repeated."""
    errors: list[str] = field(default_factory=list)

    def add_error(self, begin_s: float, status: int, error: str) -> None:
        """Count a failed request as cut if the kill explains it, otherwise as an error."""
        since_s = self.run.happened_s - begin_s
        if self.run.scenario == "kill" and status in _BROKEN and abs(since_s) < _LONGEST_REQUEST_S:
            self.cut += 1
        else:
            self.errors.append(error)

    @property
    def misses(self) -> list[str]:
        named = (("lost", self.lost), ("answered twice", self.twice), ("error", self.errors))
        return [f"{what}: {miss}" for what, misses in named for miss in misses]


def judge(run: Run) -> Judged:
    judged = Judged(run)
    complete = Counter(record.user_text for record in run.records if record.status == "complete")
    for stream in run.observations.streams:
        judged.resumed += bool(stream.resumes)
        text = run.text_of(stream.user, stream.number)
        if stream.outcome == "end" and not stream.faults and complete[text]:
            judged.whole += 1
        elif _ended_with_node(run, stream):
            judged.ended_with_node += 1
        else:
            record = "" if complete[text] else ", no complete record"
            judged.lost.append(f"{text[:40]} on {stream.node}: {_what(stream)}{record}")
    judged.twice += _answered_twice(run)
    for answer in run.observations.answers:
        if answer.status == 503 and answer.retry_after:
            judged.refused += 1
        else:
            judged.add_error(answer.begin_s, answer.status, f"{answer.operation}: {answer.status} {answer.detail}")
    for begun, status, error in run.rest.errors:
        judged.add_error(begun - run.begun, status, error)
    return judged


def _what(stream: Stream) -> str:
    seen = stream.outcome or "no terminal event"
    return "; ".join([f"{seen} {stream.message}".strip(), *stream.faults])


def _ended_with_node(run: Run, stream: Stream) -> bool:
    """Return whether the stream ran on the killed or cut-off node then, and its client was told that it has ended.

    If a killed node had not answered yet, another node answers the repeated request, with an event that has no id.
    """
    if run.scenario == "rolling" or not stream.begin_s <= run.happened_until_s or stream.end_s < run.happened_s:
        return False
    on_it = stream.node == _VICTIM or (run.scenario == "kill" and stream.unnumbered)
    return on_it and stream.outcome.startswith("error") and not stream.faults


def _answered_twice(run: Run) -> Iterator[str]:
    """Name the texts with two records or two calls. A call that ended with the killed node is no answer."""
    records = Counter(record.user_text for record in run.records)
    calls = run.calls_ended if run.scenario == "kill" else run.calls_begun
    answers = Counter(record.user_text for record in run.records if record.status == "complete")
    for text, count in (answers if run.scenario == "kill" else records).items():
        if count > 1:
            yield f"{text[:40]}: {count} records"
    for text, count in calls.items():
        if count > 1:
            yield f"{text[:40]}: {count} calls"
