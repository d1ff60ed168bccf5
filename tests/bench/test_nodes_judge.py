"""What the judge of `bench.nodes` counts as lost, as answered twice, and as an error."""

from collections import Counter

from bench.nodes.judge import Judged, judge
from bench.nodes.run import Run
from bench.soak.observations import Answer, Observations, Stream
from bench.soak.records import Record

KILLED_AT_S = 10.0


def run_of(scenario: str, *streams: Stream, statuses: tuple[str, ...] = ()) -> Run:
    """Return a run in which the records of the first streams have these statuses."""
    run = Run(
        scenario,
        Observations(lambda: 0.0, streams=list(streams)),
        happened_s=KILLED_AT_S,
        happened_until_s=KILLED_AT_S,
    )
    texts = [run.text_of(stream.user, stream.number) for stream in streams]
    run.records = [Record(status, text, "") for status, text in zip(statuses, texts, strict=False)]
    run.calls_begun = run.calls_ended = Counter(texts)
    return run


def stream(*, outcome: str, node: str = "parley1", unnumbered: bool = False) -> Stream:
    return Stream("text", 1, 5.0, 1, end_s=20.0, outcome=outcome, node=node, unnumbered=unnumbered)


def counts(judged: Judged) -> tuple[int, int, int, int, int]:
    return judged.whole, judged.ended_with_node, judged.cut, len(judged.lost), len(judged.twice)


def test_a_stream_is_whole_only_with_its_record() -> None:
    whole = stream(outcome="end")
    assert counts(judge(run_of("rolling", whole, statuses=("complete",)))) == (1, 0, 0, 0, 0)
    assert counts(judge(run_of("rolling", whole, statuses=("running",)))) == (0, 0, 0, 1, 0)


def test_an_error_is_explained_only_by_a_fault_of_its_node() -> None:
    ended = "error backend_unavailable"
    assert counts(judge(run_of("kill", stream(outcome=ended, node="parley2")))) == (0, 1, 0, 0, 0)
    assert counts(judge(run_of("kill", stream(outcome=ended, unnumbered=True)))) == (0, 1, 0, 0, 0)
    assert counts(judge(run_of("kill", stream(outcome=ended)))) == (0, 0, 0, 1, 0)
    assert counts(judge(run_of("cut-postgres", stream(outcome=ended, node="parley2")))) == (0, 1, 0, 0, 0)
    assert counts(judge(run_of("cut-postgres", stream(outcome=ended)))) == (0, 0, 0, 1, 0)
    assert counts(judge(run_of("rolling", stream(outcome=ended, node="parley2")))) == (0, 0, 0, 1, 0)
    assert counts(judge(run_of("kill", stream(outcome="", node="parley2")))) == (0, 0, 0, 1, 0)


def test_two_calls_or_two_records_are_two_answers() -> None:
    run = run_of("rolling", stream(outcome="end"), statuses=("complete",))
    run.calls_begun = run.calls_begun + run.calls_begun
    assert counts(judge(run)) == (1, 0, 0, 0, 1)
    run = run_of("rolling", stream(outcome="end"), statuses=("complete",))
    run.records *= 2
    assert counts(judge(run)) == (1, 0, 0, 0, 1)


def test_a_call_that_a_kill_has_cut_is_no_answer() -> None:
    run = run_of("kill", stream(outcome="end"), statuses=("complete",))
    run.calls_begun = run.calls_begun + run.calls_begun
    assert counts(judge(run)) == (1, 0, 0, 0, 0)


def answer(status: int, *, at_s: float, retry_after: str = "") -> Answer:
    return Answer("begin", at_s, at_s + 1, status, "", "", "", retry_after=retry_after)


def test_a_refusal_says_when_to_come_back() -> None:
    run = run_of("rolling")
    run.observations.answers += [answer(503, at_s=1, retry_after="1"), answer(503, at_s=1), answer(502, at_s=1)]
    judged = judge(run)
    assert (judged.refused, len(judged.errors)) == (1, 2)


def test_only_requests_at_the_time_of_the_kill_are_cut_by_it() -> None:
    run = run_of("kill")
    run.observations.answers += [answer(0, at_s=KILLED_AT_S), answer(0, at_s=KILLED_AT_S + 10)]
    run.rest.errors += [(run.begun + KILLED_AT_S, 502, "sign-in"), (run.begun + KILLED_AT_S, 500, "sign-in")]
    judged = judge(run)
    assert (judged.cut, len(judged.errors)) == (2, 2)
