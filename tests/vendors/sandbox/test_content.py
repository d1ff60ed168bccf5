"""The content of the sandbox's answers."""

from array import array
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.audio.audio import wav_header
from streams.audio.mp3 import mp3_duration_ms
from vendors.protocols import ChatMessage
from vendors.sandbox import content


@given(st.text(max_size=100))
def test_the_words_add_up_to_the_text(text: str):
    assert "".join(content.words(text)) == (text if text.strip() else "")
    assert len(content.words(text)) == content.tokens(text)


def test_reply_is_that_of_the_scripted_model():
    assert content.reply([ChatMessage("user", "repeat 3 words")]) == "word1 word2 word3"


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 24_000, 44_100])
def test_speech_lasts_as_long_as_its_text_and_is_not_silent(rate: int):
    pcm = content.speech("x" * 30, rate)

    assert len(pcm) == 2 * 2 * rate
    assert max(array("h", pcm)) > 5_000
    assert content.speech("x" * 30, rate, speed=2.0) == pcm[: 2 * rate]


def test_different_texts_have_different_audio():
    spoken = {content.speech(f"Sentence number {number}.", 24_000)[:2_000] for number in range(20)}

    assert len(spoken) > 15


def test_mp3_duration_follows_from_its_samples():
    audio = content.mp3(content.speech("x" * 30, 24_000), 24_000)

    assert mp3_duration_ms(audio) == pytest.approx(2_000, abs=120)


@given(st.binary(max_size=3_000), st.integers(1, 2_000))
def test_pieces_add_up_to_the_audio_and_split_no_sample(audio: bytes, whole_ms: int):
    pieces = list(content.pieces(audio, whole_ms))

    assert b"".join(pieces) == audio
    assert all(len(piece) % 2 == 0 for piece in pieces[:-1])


@given(st.text(max_size=60), st.integers(0, 5_000))
def test_times_cover_the_text_in_order(text: str, whole_ms: int):
    characters = content.timed_characters(text, whole_ms)
    words = content.timed_words(text, whole_ms)

    assert "".join(timed.text for timed in characters) == text
    assert [timed.text for timed in words] == text.split()
    assert all(text[timed.at :].startswith(timed.text) for timed in words)
    for timed in (characters, words):
        assert all(one.begin_ms <= one.end_ms <= other.begin_ms for one, other in pairwise(timed))
        assert not timed or timed[-1].end_ms <= whole_ms


def test_transcripts_follow_from_the_length_or_the_key():
    samples = content.speech("x" * 45, 16_000)

    heard = content.recording(samples, sample_rate=16_000)

    assert heard is not None
    assert heard.transcript(None) == "I heard 3.0 seconds of sound."
    assert heard.transcript("Hello") == "Hello"


@pytest.mark.parametrize("streamed", [True, False])
def test_wav_is_read_as_its_samples(*, streamed: bool):
    samples = content.speech("x" * 15, 22_050)
    header = wav_header(22_050, data_bytes=None if streamed else len(samples))

    assert content.recording(header + samples) == content.Recording(1.0, silent=False)


def test_silence_has_no_transcript_whatever_the_options():
    heard = content.recording(array("h", [150, -150] * 16_000).tobytes(), sample_rate=16_000)

    assert heard is not None
    assert heard.transcript("Hello") == ""


@pytest.mark.parametrize("audio", [b"", b"hello", bytes(1_000), b"RIFF\0\0\0\0WAVEdata\0\0\0\0"])
def test_invalid_audio_is_no_recording(audio: bytes):
    assert content.recording(audio) is None
