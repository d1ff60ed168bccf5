"""The outcome of a stream is the same for every split of its bytes."""

from base64 import b64encode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.stream_outcome import EventCounter, StreamParser
from tests.bench.streams import chunked, frame, frames, pieces

PING = b'event: ping\ndata: {"content":"ping","timestamp":1}\n\n'
TEXTS = st.lists(st.text(min_size=1, max_size=30), max_size=8)
CUTS = st.lists(st.integers(min_value=0, max_value=10_000), max_size=30)
LASTS = st.sampled_from(["end", "error"])


def counted(parts: list[bytes]) -> EventCounter:
    found = EventCounter(b"assistant_output_chunk")
    for part in parts:
        found.feed(part)
    return found


def parsed(raw: bytes) -> StreamParser:
    found = StreamParser()
    found.feed(raw)
    found.end()
    return found


@given(texts=TEXTS, last=LASTS, cuts=CUTS, pings=st.booleans(), joined=st.booleans())
def test_events_are_counted_however_the_bytes_are_cut(texts, last, cuts, pings, joined):
    sent = frames(texts, last)
    if pings:
        sent.insert(1, PING)
    body = chunked([b"".join(sent)] if joined else sent)

    found = counted(pieces(body, cuts))

    assert found.events == len(texts) + 2
    assert found.begun == bool(texts)
    assert found.complete
    assert found.outcome() == ("end" if last == "end" else "error backend_unavailable", "")


@given(texts=TEXTS, last=LASTS, cuts=CUTS, pings=st.booleans(), chunk_cuts=CUTS)
def test_every_event_is_read_however_bytes_and_chunks_are_cut(texts, last, cuts, pings, chunk_cuts):
    sent = frames(texts, last)
    if pings:
        sent.insert(1, PING)
    body = chunked(pieces(b"".join(sent), chunk_cuts))
    found, names, spoken = StreamParser(), [], []

    for piece in pieces(body, cuts):
        names += [event.name for event in found.feed(piece)]
        spoken += found.texts
    found.end()

    assert found.fault == ""
    assert found.outcome == ("end" if last == "end" else "error backend_unavailable")
    assert [name for name in names if name != "ping"] == ["start", *["assistant_output_chunk"] * len(texts), last]
    assert spoken == texts


@given(texts=TEXTS, cuts=CUTS)
def test_a_stream_ends_with_its_last_byte(texts, cuts):
    body = chunked(frames(texts))

    assert not counted(pieces(body[:-1], cuts)).complete
    assert counted(pieces(body, cuts)).complete


@given(texts=st.lists(st.text(min_size=1), min_size=1, max_size=8), lost=st.integers(min_value=0, max_value=7))
def test_both_readers_detect_a_lost_event(texts, lost):
    sent = frames(texts)
    del sent[1 + lost % len(texts)]

    assert "has the id" in counted([chunked(sent)]).outcome()[1]
    assert "follows" in parsed(chunked(sent)).fault


def test_streams_without_a_last_event_are_reported():
    body = chunked(frames(["a"])[:-1])

    assert counted([body]).complete
    assert counted([body]).outcome() == ("", "no last event")
    assert parsed(body).fault == "no last event"


def test_events_after_the_last_one_are_reported():
    body = chunked([*frames(["a"]), frame(4, "end", {"digest": {}})])

    assert "after the last event" in parsed(body).fault


@pytest.mark.parametrize("digest", [{"chars": 1, "sha256": "0"}, {}, None])
def test_wrong_digests_are_reported(digest):
    body = chunked([*frames(["a"])[:-1], frame(3, "end", {"digest": digest})])

    assert parsed(body).fault.startswith("the digest of `end` is")


def test_an_end_without_a_digest_is_a_fault_if_one_is_required():
    body = chunked([*frames(["a"])[:-1], frame(3, "end", {})])
    bare = StreamParser(needs_digest=False)
    bare.feed(body)
    bare.end()

    assert "cannot be parsed" in parsed(body).fault
    assert bare.fault == ""


@pytest.mark.parametrize("raw", [b"zz\r\n", b"5\r\nid: \n\r\n", b"a\r\nno event\n\n\r\n"])
def test_invalid_event_streams_are_reported(raw):
    assert parsed(raw).fault != ""


def test_the_digest_covers_the_bytes_of_audio():

    audio = bytes(range(100))
    digest = {"chars": 0, "sha256": sha256(audio).hexdigest()}
    sent = [
        frame(1, "audio_chunk", {"audio": b64encode(audio[:50]).decode()}),
        frame(2, "audio_chunk", {"audio": b64encode(audio[50:]).decode()}),
        frame(3, "end", {"digest": digest}),
    ]

    assert parsed(chunked(sent)).fault == ""
