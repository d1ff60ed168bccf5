"""The judge of a soak finds every anomaly and ignores expected errors."""

from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from bench.soak.judge import (
    Anomaly,
    Judged,
    answer_anomalies,
    error_anomalies,
    leftover_anomalies,
    log_anomalies,
    memory_anomalies,
    record_anomalies,
    stream_anomalies,
    why_allowed,
)
from bench.soak.observations import AcknowledgedTurn, Answer, Stream
from bench.soak.records import Leftovers, Record
from bench.soak.samples import Sample, Window, windows
from bench.soak.schedule import Disturbances

GOOD = Stream("text", 1, 100, request_id="soak-1", stream_id="s1", end_s=110, outcome="end")
TURN = AcknowledgedTurn(
    1, "c1", 1, "s1", "soak-1", 110, "complete", user_text="Hello", text_sha256=sha256(b"Hi").hexdigest()
)
RECORD = Record("complete", "Hello", sha256(b"Hi").hexdigest(), "s1")
MIB = 2**20


def undisturbed() -> Disturbances:
    return Disturbances()


def disturbed(target: str, action: str) -> Disturbances:
    """Return a disturbance from 100 to 105 s."""
    found = Disturbances()
    found.begin(target, action, at_s=100).end_s = 105
    return found


def missed(anomalies: list[Anomaly]) -> list[str]:
    return [anomaly.what for anomaly in anomalies if anomaly.miss]


def test_good_streams_have_no_anomaly():
    assert stream_anomalies([GOOD], undisturbed()) == []


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"outcome": ""}, "no terminal event"),
        ({"faults": ["a second terminal event: end after end"]}, "a second terminal event: end after end"),
        ({"faults": ["gap: event 3 follows 1"]}, "gap: event 3 follows 1"),
        ({"first_stream_id": "s0"}, "a repeated request with the same key began another stream"),
    ],
)
def test_faulty_streams_are_found(fields: dict, what: str):
    (found,) = stream_anomalies([replace(GOOD, **fields)], undisturbed())

    assert (found.what, found.miss) == (what, True)
    assert (found.stream_id, found.request_id, found.at_s) == ("s1", "soak-1", 110)


def test_an_unavailable_store_excuses_no_missing_terminal_event():
    assert missed(stream_anomalies([replace(GOOD, outcome="")], disturbed("Valkey", "empty"))) == [
        "no terminal event"
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"outcome": "error internal", "message": "internal: the server failed"},
        {"outcome": "error database", "message": "database: the database is not reachable"},
        {"outcome": "error backend_unavailable", "unnumbered": True},
        {"outcome": "error backend_unavailable", "message": "backend_unavailable: the server is draining"},
        {"outcome": "error invalid_operation", "message": "invalid_operation: the stream was canceled"},
    ],
)
def test_an_error_without_a_reason_is_found(fields: dict):
    (found,) = error_anomalies([replace(GOOD, **fields)], undisturbed())

    assert found.miss
    assert found.what.startswith(f"ended with {fields['outcome']}")


@pytest.mark.parametrize("outcome", ["error all_strategies_failed", "error backend_unavailable"])
def test_errors_that_vendors_may_cause_are_not_misses(outcome: str):
    assert missed(error_anomalies([replace(GOOD, outcome=outcome)], undisturbed())) == []


def test_an_unavailable_store_explains_only_its_own_errors():
    unavailable = disturbed("PostgreSQL", "kill")

    assert missed(error_anomalies([replace(GOOD, outcome="error database")], unavailable)) == []
    assert missed(error_anomalies([replace(GOOD, outcome="error internal")], unavailable))


@pytest.mark.parametrize("outcome", ["end", "error all_strategies_failed"])
@pytest.mark.parametrize(
    ("cut_at_s", "disturbances", "miss"),
    [
        ([103], undisturbed(), True),
        ([103], disturbed("server", "replace"), True),
        ([103], disturbed("PostgreSQL", "kill"), False),
        ([103, 150], disturbed("PostgreSQL", "kill"), True),
    ],
)
def test_only_an_unavailable_store_explains_a_response_that_breaks_off(
    outcome: str, cut_at_s: list[float], disturbances: Disturbances, *, miss: bool
):
    cut = replace(GOOD, outcome=outcome, cut_at_s=cut_at_s, resumes=len(cut_at_s), end_s=160)

    found = error_anomalies([cut], disturbances)

    assert [one.miss for one in found if one.what == "response broke off, stream resumed"] == [miss]


def answer(status: int, error_type: str = "backend unavailable") -> Answer:
    return Answer("begin", 101, 102, status, error_type, "detail", "soak-2")


@pytest.mark.parametrize(
    ("given", "disturbances", "allowed"),
    [
        (answer(503), disturbed("Valkey", "pause"), True),
        (answer(502), disturbed("PostgreSQL", "kill"), True),
        (answer(429, "api_rate_limit"), disturbed("Valkey", "empty"), True),
        (answer(409, "invalid_operation"), disturbed("Valkey", "kill"), True),
        (answer(503), disturbed("server", "replace"), False),
        (answer(503), undisturbed(), False),
        (answer(429, "api_rate_limit"), undisturbed(), False),
        (answer(409, "invalid_operation"), undisturbed(), False),
        (answer(409, "invalid_operation"), disturbed("server", "replace"), False),
        (answer(503, ""), disturbed("Valkey", "pause"), False),
        (answer(500, "internal"), disturbed("Valkey", "pause"), False),
        (answer(404, "item_not_found"), disturbed("Valkey", "empty"), False),
        (answer(0, ""), disturbed("server", "replace"), False),
    ],
)
def test_an_answer_may_be_a_refusal_only_in_the_envelope_and_with_a_reason(
    given: Answer, disturbances: Disturbances, allowed: bool
):
    assert bool(why_allowed(given, disturbances)) is allowed
    assert [anomaly.miss for anomaly in answer_anomalies([given], disturbances)] == [not allowed]


def test_stored_answers_that_equal_the_received_ones_have_no_anomaly():
    assert record_anomalies([TURN], {("c1", 1): RECORD}, undisturbed(), where="PostgreSQL") == []
    assert (
        record_anomalies([TURN], {("c1", 1): replace(RECORD, stream_id="")}, undisturbed(), where="history") == []
    )


@pytest.mark.parametrize(
    ("record", "wrong"),
    [
        (None, "no record"),
        (replace(RECORD, status="incomplete"), "status incomplete, not complete"),
        (replace(RECORD, status="running"), "status running, not complete"),
        (replace(RECORD, text_sha256=sha256(b"H").hexdigest()), "different answer"),
        (replace(RECORD, user_text="Hell"), "different user text"),
        (replace(RECORD, stream_id="s2"), "the record belongs to another stream"),
    ],
)
def test_acknowledged_answers_that_are_not_stored_are_found(record: Record | None, wrong: str):
    kept = {("c1", 1): record} if record else {}

    (found,) = record_anomalies([TURN], kept, undisturbed(), where="PostgreSQL")

    assert found.what == f"PostgreSQL: {wrong}"
    assert found.request_id == "soak-1"


def test_a_record_is_compared_by_the_text_of_all_its_paragraphs():
    content = [
        {"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "audio_url", "audio_url": {}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "H", "delimiter": "\n\n"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "i"}]},
    ]

    assert Record.of("complete", content, "s1") == RECORD


@pytest.mark.parametrize(
    ("leftovers", "what"),
    [
        (Leftovers(running=[("c1", 2)]), "a record is left running"),
        (Leftovers(queued=3), "turns are left in the retry queue"),
        (Leftovers(turns=["parley:{bench:u}:turn:c1"]), "a turn is left in Valkey"),
        (Leftovers(slots=["parley:{bench:u}:streams s1"]), "a slot is left in Valkey"),
    ],
)
def test_leftover_turns_are_found(leftovers: Leftovers, what: str):
    assert missed(leftover_anomalies(leftovers, at_s=1)) == [what]
    assert not leftovers.is_empty


def test_clean_stores_have_no_anomaly():
    assert leftover_anomalies(Leftovers(), at_s=1) == []
    assert Leftovers().is_empty


def window(end_s: float, children_mib: float, parent_mib: float = 60, long_lived_mib: float = 110) -> Window:
    return Window(end_s - 120, end_s, children_mib * MIB, parent_mib * MIB, long_lived_mib * MIB, 100, MIB, 20)


@pytest.mark.parametrize(
    ("found", "grown"),
    [
        ([window(300, 90), window(600, 100), window(3600, 105)], []),
        ([window(300, 120), window(600, 100), window(3600, 80)], []),
        ([window(600, 100), window(3600, 106)], ["memory of the children grew"]),
        ([window(600, 100), window(3600, 100, 64)], ["memory of the parent grew"]),
        ([window(600, 100), window(3600, 100, 60, 115)], []),
        ([window(600, 100), window(3600, 100, 60, 116)], ["memory of the long-lived process grew"]),
        ([window(600, 100)], ["memory: fewer than two windows were measured"]),
        ([window(600, 0), window(3600, 100)], ["memory of the children grew"]),
    ],
)
def test_memory_growth_after_the_tenth_minute_is_found(found: list[Window], grown: list[str]):
    assert missed(memory_anomalies(found, settled_s=600)) == grown


def sample(at_s: float, children_bytes: int, valkey_bytes: int = MIB) -> Sample:
    return Sample(
        at_s=at_s,
        children=2,
        children_bytes=children_bytes,
        children_rss_bytes=0,
        draining_bytes=0,
        parent_bytes=MIB,
        long_lived_bytes=110 * MIB,
        descriptors=10,
        threads=4,
        server_cpu_s=0,
        generator_cpu_s=0,
        valkey_bytes=valkey_bytes,
        postgres_connections=8,
        live=300,
        ended=0,
        events=0,
    )


def test_memory_is_measured_at_the_end_of_each_period_by_the_median():
    samples = [sample(at_s, 200 * MIB if at_s % 100 < 60 else 100 * MIB) for at_s in range(0, 300, 5)]
    samples[14] = sample(70, 900 * MIB, valkey_bytes=-1)

    found = windows(samples, total_s=300, every_s=100, lasting_s=40)

    assert [(one.begin_s, one.end_s) for one in found] == [(60, 100), (160, 200), (260, 300)]
    assert [one.children_bytes for one in found] == [100 * MIB] * 3
    assert found[0].valkey_bytes == MIB, "what is unknown is left out"


def test_errors_in_the_servers_log_are_found_with_their_time_and_warnings_counted():
    lines = [
        b'{"level":"info","event":"request","timestamp":"2026-11-22T10:00:01Z"}\n',
        b'{"level":"warning","event":"attempt.failed","timestamp":"2026-11-22T10:00:02Z"}\n',
        b'{"level":"error","event":"attempts.lost","timestamp":"2026-11-22T10:01:43Z"}\n',
        b'{"level":"error","event":"turn.lost","stream_id":"s1","timestamp":"2026-11-22T10:01:44Z"}\n',
        b"Traceback (most recent call last):\n",
    ]
    begun = datetime(2026, 11, 22, 10, tzinfo=UTC)

    found, counts = log_anomalies(lines, disturbed("Valkey", "kill"), begun=begun)

    assert missed(found) == ["server's log: turn.lost", "server's log: a line that is not JSON"]
    assert [(one.at_s, one.during) for one in found] == [(104, ["Valkey kill"])] * 2
    assert found[0].stream_id == "s1"
    assert counts["warning attempt.failed"] == 1


@pytest.mark.parametrize(("target", "miss"), [("PostgreSQL", False), ("server", True)])
def test_a_failed_replacement_is_a_miss_unless_a_store_is_unavailable(target: str, *, miss: bool):
    line = b'{"level":"error","event":"process.not_replaced","timestamp":"2026-11-22T10:01:43Z"}\n'

    found, counts = log_anomalies([line], disturbed(target, "kill"), begun=datetime(2026, 11, 22, 10, tzinfo=UTC))

    assert missed(found) == ["server's log: process.not_replaced"] * miss
    assert counts.total() == 1


def test_a_soak_passes_if_no_verdict_has_a_miss():
    judged = Judged()
    judged.add("streams", "1 stream", [Anomaly(what="cut", at_s=1, miss=False)])
    assert judged.passed

    judged.add("memory", "much", [Anomaly(what="it grew", at_s=1)])

    assert not judged.passed
    assert [verdict.misses for verdict in judged.verdicts] == [0, 1]
