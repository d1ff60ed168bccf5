"""A stream that is read in several responses is checked as one, and every fault is found."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.soak.transcript import Transcript
from tests.bench.streams import frame, frames, pieces

TEXTS = ["Once ", "upon ", "a time"]


def read(*responses: tuple[int, list[bytes]]) -> Transcript:
    """Responses, each with the event id after which it was requested."""
    found = Transcript()
    for after, sent in responses:
        found.begin(after=after)
        found.feed(b"".join(sent))
    return found


@given(
    texts=st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=8),
    cut=st.integers(min_value=0, max_value=10_000),
    cuts=st.lists(st.integers(min_value=0, max_value=10_000), max_size=20),
)
def test_a_stream_resumed_at_any_point_is_complete(texts: list[str], cut: int, cuts: list[int]):
    sent = frames(texts)
    raw = b"".join(sent)
    found = Transcript()
    found.begin()
    for piece in pieces(raw[: 1 + cut % len(raw)], cuts):
        found.feed(piece)
    found.begin(after=found.last_id)
    found.feed(b"".join(sent[found.last_id :]))

    assert (found.outcome, found.faults) == ("end", [])
    assert "".join(found.written) == "".join(texts)


def test_resent_events_do_not_count_twice():
    sent = frames(TEXTS)

    found = read((0, sent[:3]), (0, sent))

    assert (found.outcome, found.faults, found.written) == ("end", [], TEXTS)


def test_an_event_that_is_another_one_when_it_is_sent_again_is_found():
    found = read((0, frames(TEXTS)[:3]), (0, frames(["Twice ", "upon ", "a time"])))

    assert "event 2 differs when it is sent again" in found.faults


def test_the_digest_covers_text_that_a_restart_discards():
    digest = {"chars": 8, "sha256": sha256(b"VoidGood").hexdigest()}
    found = read(
        (
            0,
            [
                frame(1, "start", "start"),
                frame(2, "assistant_output_chunk", {"index": 0, "text": "Void"}),
                frame(3, "assistant_output_restart", {"from_index": 0}),
                frame(4, "assistant_output_chunk", {"index": 0, "text": "Good"}),
                frame(5, "end", {"digest": digest}),
            ],
        )
    )

    assert (found.outcome, found.faults, found.written) == ("end", [], ["Good"])


def unnumbered(name: str) -> bytes:
    return frame(0, name, {"error": {"error_type": "backend_unavailable"}}).partition(b"\n")[2]


END = frames(TEXTS)[-1]


@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        ([*frames(TEXTS), END.replace(b"id: 5", b"id: 6")], "a second terminal event: end after end"),
        ([*frames(TEXTS), unnumbered("error")], "a second terminal event: error after end"),
        ([*frames(TEXTS), frame(6, "user_input", "late")], "user_input follows the terminal event"),
        (frames(TEXTS)[:1] + frames(TEXTS)[2:], "gap: event 3 follows 1"),
        ([*frames(TEXTS)[:4], END.replace(b'"chars":', b'"chars":1')], "the digest of `end` is"),
        ([b"id: x\nevent: start\ndata: {}\n\n"], "an event cannot be parsed"),
    ],
)
def test_faults_of_a_stream_are_found(sent: list[bytes], fault: str):
    assert any(found.startswith(fault) for found in read((0, sent)).faults)


def test_a_stream_without_a_terminal_event_has_no_outcome():
    assert not read((0, frames(TEXTS)[:-1])).complete


def test_the_error_in_place_of_a_lost_stream_is_its_terminal_event():
    found = read((0, frames(TEXTS)[:-1]), (4, [unnumbered("error")]))

    assert (found.outcome, found.unnumbered, found.faults) == ("error backend_unavailable", True, [])


def test_a_ping_is_not_an_event_of_the_stream():
    ping = frame(0, "ping", "ping").partition(b"\n")[2]

    assert read((0, [ping, *frames(TEXTS)])).faults == []
