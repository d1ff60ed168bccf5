"""Audio, and what is sent instead of audio, is recognized by its first bytes."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.audio.audio import wav_header
from streams.audio.formats import NAMES, SNIFF_BYTES, codec_of, sniff
from tests.streams.audio.mp3_files import plain_mp3, tagged_mp3, tone
from tests.streams.audio.phone_files import PHONE_TYPES, amr_wb, phone_file, silk
from tests.streams.audio.wav_files import fmt, wav


@pytest.mark.parametrize(
    ("head", "mime_type"),
    [
        (wav_header(16_000), "audio/wav"),
        (b"OggS\0\2" + bytes(40), "audio/ogg"),
        (b"fLaC\0\0\0\x22", "audio/flac"),
        (b"\0\0\0\x20ftypM4A \0\0\0\0", "audio/mp4"),
        (b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81", "audio/webm"),
        (tagged_mp3(), "audio/mpeg"),
        (plain_mp3(), "audio/mpeg"),
        (plain_mp3(sample_rate=8_000), "audio/mpeg"),
        (plain_mp3(sample_rate=44_100, kbps=128), "audio/mpeg"),
        (silk(), "audio/silk"),
        (silk(marked=True), "audio/silk"),
        (amr_wb(), "audio/amr-wb"),
        *((phone_file(name), mime_type) for name, mime_type in PHONE_TYPES.items()),
        (b"FORM\0\0\0\0AIFCFVER", "audio/aiff"),
        (b"BW64\xff\xff\xff\xffWAVEds64", "audio/x-rf64"),
        (b"\xef\xbb\xbf\r\n<!DOCTYPE html><html>", "text/html"),
        (b"<HTML lang=en>", "text/html"),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "application/xml"),
        (b'{"error": {"code": 404, "message": "not found"}}', "application/json"),
        ('{ "message": "Ссылка уже не действительна"}'.encode(), "application/json"),
        (b"", None),
        (b'{"' + bytes(2_000), None),
        (b'{"error": "\xff\xfe too quiet to be a text, but PCM"', None),
        (b"FORM\0\0\0\0ILBM", None),
        (phone_file("aac")[:300], None),
        (b"RIFF\0\0\0\0AVI LIST", None),
        (tone(seconds=0.1, sample_rate=16_000), None),
        (bytes(SNIFF_BYTES), None),
        (b"\xff" * SNIFF_BYTES, None),
        (b"\xff\xff\xfe\xff" * 400, None),
        (b"\xff\xfb" * 800, None),
        (b"\xff\xf3\x64\xc4" + bytes(2000), None),
    ],
)
def test_type_is_detected_by_the_first_bytes(head: bytes, mime_type: str | None):
    assert sniff(head) == mime_type


@given(st.binary(min_size=SNIFF_BYTES // 2 + 1, max_size=SNIFF_BYTES // 2 + 1))
def test_quiet_pcm_is_not_detected_as_mp3(noise: bytes):
    samples = [byte % 7 - 3 for byte in noise]

    assert sniff(struct.pack(f"<{len(samples)}h", *samples)) is None


@given(
    st.one_of(
        st.binary(max_size=3000),
        st.integers(min_value=0, max_value=3000).map(lambda size: plain_mp3(seconds=1.0)[:size]),
    ),
    st.binary(max_size=200),
)
def test_bytes_beyond_the_first_do_not_change_the_type(head: bytes, more: bytes):
    head = head.ljust(SNIFF_BYTES, b"\0")

    assert sniff(head + more) == sniff(head) == sniff(head[:SNIFF_BYTES])


SOUNDS = [wav_header(16_000), plain_mp3(), amr_wb(), silk(), *map(phone_file, PHONE_TYPES)]


@given(st.sampled_from(SOUNDS), st.integers(min_value=1, max_value=4), st.binary(min_size=SNIFF_BYTES))
def test_pcm_is_not_detected_by_a_part_of_a_type(sound: bytes, size: int, noise: bytes):
    """Two samples of PCM may look like the beginning of any type."""
    found = sniff(sound[:size] + b"\0" + noise)

    assert found is None


@given(st.lists(st.integers(min_value=-9_000, max_value=9_000), min_size=SNIFF_BYTES // 2))
def test_pcm_of_any_loudness_is_not_detected_as_a_type(samples: list[int]):
    assert sniff(struct.pack(f"<{len(samples)}h", *samples)) is None


@pytest.mark.parametrize(
    ("head", "codec"),
    [
        (wav_header(16_000), "16-bit PCM"),
        (wav((b"JUNK", bytes(28)), fmt(7, 1, 8_000, 8)), "mu-law"),
        (wav(fmt(17, 1, 8_000, 4)), "another codec"),
        (wav(fmt(1, 1, 48_000, 24)), "another codec"),
        (b"RIFF\0\0\0\0WAVEJUNK" + bytes(2_000), ""),
        (phone_file("opus"), "Opus"),
        (phone_file("ogg_flac"), "another codec"),
        (phone_file("webm"), "Opus"),
        (phone_file("fragmented"), "fragmented"),
        (phone_file("m4a"), ""),
        (phone_file("amr"), ""),
    ],
)
def test_codec_is_detected_where_it_matters(head: bytes, codec: str):
    mime_type = sniff(head)

    assert mime_type is not None
    assert codec_of(head[:SNIFF_BYTES], mime_type) == codec


def test_each_type_has_a_name():
    assert {sniff(sound) for sound in SOUNDS} <= set(NAMES)
