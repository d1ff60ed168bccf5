"""The judge of a soak finds every anomaly of streams and stored answers, and ignores expected errors."""

from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from bench.soak.judge import (
    answer_anomalies,
    error_anomalies,
    leftover_anomalies,
    record_anomalies,
    stream_anomalies,
    why_allowed,
)
from bench.soak.observations import AcknowledgedTurn, Answer, Stream
from bench.soak.records import Leftovers, Record
from bench.soak.schedule import Disturbances
from bench.soak.vendor_faults import VendorFaults
from tests.bench.disturbances import disturbed, missed

GOOD = Stream("text", 1, 100, 3, request_id="soak-1", stream_id="s1", end_s=110, outcome="end")
TURN = AcknowledgedTurn(
    1, "c1", 1, "s1", "soak-1", 110, "complete", user_text="Hello", text_sha256=sha256(b"Hi").hexdigest()
)
RECORD = Record("complete", "Hello", sha256(b"Hi").hexdigest(), "s1")
BEGUN = datetime(2026, 11, 22, 10, tzinfo=UTC)


def undisturbed() -> Disturbances:
    return Disturbances()


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
        {"outcome": "error backend_unavailable", "number": 2},
        {"outcome": "error all_strategies_failed", "user": 2},
    ],
)
def test_an_error_without_a_reason_is_found(fields: dict):
    (found,) = error_anomalies([replace(GOOD, **fields)], undisturbed(), VendorFaults({(1, 3)}))

    assert found.miss
    assert found.what.startswith(f"ended with {fields['outcome']}")


@pytest.mark.parametrize("outcome", ["error all_strategies_failed", "error backend_unavailable"])
def test_errors_of_streams_with_a_failing_call_are_not_misses(outcome: str):
    assert missed(error_anomalies([replace(GOOD, outcome=outcome)], undisturbed(), VendorFaults({(1, 3)}))) == []


@pytest.mark.parametrize(("at_s", "miss"), [(99, True), (107, False), (111, True)])
def test_an_error_of_a_recording_is_explained_by_a_call_that_failed_during_its_stream(at_s: float, *, miss: bool):
    stream = replace(GOOD, kind="audio", outcome="error backend_unavailable")
    lines = [b'{"at":%d,"said":"How are you today?"}' % (BEGUN.timestamp() + at_s)]

    found = error_anomalies([stream], undisturbed(), VendorFaults.of(lines, begun=BEGUN))

    assert [one.miss for one in found] == [miss]


def test_failing_calls_are_identified_by_the_text_of_the_turn():
    lines = [b'{"at":1.5,"said":"Turn 3 of user 1: what happened then?"}']

    assert VendorFaults.of(lines, begun=BEGUN) == VendorFaults({(1, 3)})


def test_an_unavailable_store_explains_only_its_own_errors():
    unavailable = disturbed("PostgreSQL", "kill")

    assert missed(error_anomalies([replace(GOOD, outcome="error database")], unavailable, VendorFaults())) == []
    assert missed(error_anomalies([replace(GOOD, outcome="error internal")], unavailable, VendorFaults()))


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

    found = error_anomalies([cut], disturbances, VendorFaults({(1, 3)}))

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
        (Leftovers(queued=3), "entries are left in a retry queue"),
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
