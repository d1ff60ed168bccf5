"""Audio, and what is sent instead of audio, is recognized by its first bytes."""

import base64
import bz2
import gzip
import lzma
import math
import plistlib
import random
import struct
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.audio.audio import wav_header
from streams.audio.codec import codec_of
from streams.audio.formats import SNIFF_BYTES, sniff
from streams.audio.signatures import NAMES
from tests.streams.audio.mp3_files import plain_mp3, tagged_mp3, tone
from tests.streams.audio.phone_files import PHONE_TYPES, RARE_TYPES, amr_wb, behind_a_box, phone_file, silk
from tests.streams.audio.rare_files import (
    ID3,
    dff,
    dsf,
    misplaced_moov,
    mp4_segment,
    multipart,
    plain_wav,
    rifx,
    webm_cluster,
)
from tests.streams.audio.wav_files import fmt, wav


def pe_file(magic: bytes) -> bytes:
    """Return the beginning of a program for Windows, with this magic behind that of DOS."""
    return b"MZ".ljust(60, b"\x90") + b"\x80".ljust(68, b"\0") + magic + bytes(2_000)


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
        (phone_file("aac")[50:], "audio/aac"),
        (ID3 + phone_file("aac"), "audio/aac"),
        (ID3, "audio/mpeg"),
        *((phone_file(name), mime_type) for name, mime_type in RARE_TYPES.items()),
        (phone_file("mpegts")[: 4 * 188], None),
        (phone_file("mov")[int.from_bytes(phone_file("mov")[:4]) :], "video/quicktime"),
        (b"RIFF\0\0\0\0AVI LIST", "video/x-msvideo"),
        (b"\r\n" + wav_header(16_000), "application/x-misplaced"),
        (b"\r\n" + ID3 + bytes(40), "application/x-misplaced"),
        (bytes(64) + plain_wav(), "application/x-misplaced"),
        (b"\r\n" + bytes(2_000), None),
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1", "image/jpeg"),
        (b"\xff\xd8\xff\xdb\0\4ab\xff\xc0", "image/jpeg"),
        (b"\xff\xd8\xff\xdb\0\4ab\0\0", None),
        (gzip.compress(b"text" * 900, mtime=0), "application/gzip"),
        *((b"\x1f\x8b\x08%c" % flags + bytes(2_000), "application/gzip") for flags in (4, 0x0C, 0x1F)),
        (b"\x1f\x8b\x08\xff" + bytes(2_000), None),
        (bz2.compress(b"text"), "application/x-bzip2"),
        (lzma.compress(b"text"), "application/x-xz"),
        (b"\x28\xb5\x2f\xfd\4" + bytes(40), "application/zstd"),
        (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
        (b"Rar!\x1a\7\1\0", "application/vnd.rar"),
        (b"PK\5\6" + bytes(18), "application/zip"),
        (bytes(257).replace(b"\0", b"a") + b"ustar\0", "application/x-tar"),
        (plistlib.dumps({}, fmt=plistlib.FMT_BINARY), "application/x-bplist"),
        (multipart(plain_wav()), "multipart/form-data"),
        (b"\r\n" + multipart(plain_wav()), "multipart/form-data"),
        (b"--boundary\r\n" + bytes(2_000), None),
        (b"HTTP/1.1 404 Not Found\r\n\r\n" + bytes(600), "application/http"),
        (b"BM\x36\0\x0c\0\0\0\0\0\x36\0\0\0\x28\0\0\0" + bytes(40), "image/bmp"),
        (b"BM" + bytes(2_000), None),
        (b"II*\0\x08\0\0\0", "image/tiff"),
        (b"MM\0*\0\0\0\x08", "image/tiff"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "image/heif"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", "image/heif"),
        (b"\0\0\0\x1cftypavif\0\0\0\0avifmif1", "image/avif"),
        (rifx(), "audio/x-rifx"),
        (dsf(), "audio/x-dsf"),
        (dff(), "audio/x-dff"),
        (b"ADIF" + bytes(40), "audio/x-adif"),
        (b"MPCK" + bytes(40), "audio/x-musepack-sv8"),
        (b"MP+\7" + bytes(40), "audio/x-musepack"),
        (b"MP+\0" + bytes(40), None),
        (b"MAC \x96\x0f", "audio/x-ape"),
        (b"\3dss" + bytes(40), "audio/x-dss"),
        (b"\3ds2" + bytes(40), "audio/x-ds2"),
        (b"XoS." + bytes(40), "audio/x-sox"),
        (b"\x7fELF\2\1\1" + bytes(2_000), "application/x-executable"),
        (b"\xcf\xfa\xed\xfe\7\0\0\1" + bytes(2_000), "application/x-executable"),
        (b"\xca\xfe\xba\xbe\0\0\0\x34" + bytes(2_000), "application/x-executable"),
        (pe_file(b"PE\0\0"), "application/x-executable"),
        (pe_file(b"PE\0\1"), None),
        (b"MZ" + bytes(2_000), None),
        (b"SQLite format 3\0" + bytes(2_000), "application/vnd.sqlite3"),
        (b"\x64\xa3\1\0\0\0\x7a\x46\1\0\0\0\2\0\0\0" + bytes(2_000), "audio/x-ircam"),
        (b"\0\2\xa3\x64\x46\x7a\0\0\0\0\0\1\0\0\0\2" + bytes(2_000), "audio/x-ircam"),
        (b"\x72\xf8\x1f\x4e\1\0\0\x30" + bytes(2_000), "audio/x-iec61937"),
        (b"\xf8\x72\x4e\x1f\0\1\x30\0" + bytes(2_000), "audio/x-iec61937"),
        (webm_cluster(), "video/x-webm-part"),
        *((mp4_segment(box), "video/x-mp4-part") for box in (b"", b"styp", b"sidx", b"emsg")),
        *((misplaced_moov(box), "video/quicktime") for box in (b"uuid", b"free", b"wide", b"mdat")),
        (phone_file("mov")[20:], "video/quicktime"),
        (b"<head><title>502</title></head>".ljust(600), "text/html"),
        (b"<!-- gone --><p>" + b"x" * 600, "text/html"),
        (b"\xff\xfe" + "<html><p>gone</p>".ljust(600).encode("utf-16-le"), "text/html"),
        (b"\xfe\xff" + "<html><p>gone</p>".ljust(600).encode("utf-16-be"), "text/html"),
        (b"\xff\xfe" + struct.pack("<800h", *range(64, 864)), None),
        (b"\xff\xfe" + '{"error": "not found", "code": 404}'.encode("utf-16-le"), "application/json"),
        (b"\xff\xfe" + "Diese Aufnahme ist nicht verfügbar. ".encode("utf-16-le") * 9, "text/plain"),
        (b"\xfe\xff" + "Diese Aufnahme ist nicht verfügbar. ".encode("utf-16-be") * 9, "text/plain"),
        ('{"error": "not found", "code": 404}'.encode("utf-16-le"), "application/json"),
        ("<?xml version='1.0'?><Error/>".encode("utf-16-be"), "application/xml"),
        ("Diese Aufnahme ist nicht verfügbar. ".encode("utf-16-le") * 9, None),
        (b"\x33\x25" * 1_600, None),
        (b'{"' * 1_600, None),
        (b"\xdb\x99\xdb\x9a" * 800, None),
        (base64.b64encode(bytes(2_400)), "text/x-base64"),
        (b"<Error><Code>NoSuchKey</Code></Error>", "application/xml"),
        (b'[{"error": "gone"}, {"error": "gone"}]', "application/json"),
        (b"Internal Server Error\n" + b"  at line 1\n" * 60, "text/plain"),
        ("Die Aufnahme ist nicht verfügbar. ".encode() * 20, "text/plain"),
        ("Die Aufnahme ist nicht verfügbar. ".encode("latin-1") * 20, None),
        (b"data:audio/wav;base64," + base64.b64encode(wav_header(16_000)), "text/x-data-url"),
        (base64.b64encode(wav_header(16_000) + bytes(600)), "text/x-base64"),
        (b"Gateway Timeout" * 40 + b"\0" + bytes(600), "text/plain"),
        (b"Gateway Timeout" * 30 + b"\0" + bytes(600), None),
        (b"RIFF\0\0\0\0ACON", None),
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


@given(
    seed=st.integers(min_value=0),
    loudness=st.sampled_from([0, 1, 3, 30, 200, 2_000, 9_000, 32_767]),
    offset=st.sampled_from([0, -1, -257, 64, 96, 8_260, 16_448, 28_784]),
    first=st.binary(max_size=2),
)
def test_pcm_of_any_loudness_is_not_detected_as_a_type(seed: int, loudness: int, offset: int, first: bytes):
    """Also with a constant offset, at which many samples look like characters."""
    source = random.Random(seed)  # noqa: S311 - repeatable noise
    values = (offset + source.randint(-loudness, loudness) for _ in range(SNIFF_BYTES // 2))
    samples = array("h", (min(max(value, -32_768), 32_767) for value in values)).tobytes()

    assert sniff(samples) is None or (loudness == 30 and offset > 8_000)
    assert sniff(first + b"\0\1\0" + samples) is None


@given(st.integers(min_value=1, max_value=400), st.integers(min_value=1, max_value=32_767), st.integers(0, 99))
def test_a_pure_tone_is_not_detected_as_a_type(period: int, loudness: int, begin: int):
    values = (round(loudness * math.sin(math.tau * (begin + at) / period)) for at in range(SNIFF_BYTES // 2))

    assert sniff(array("h", values).tobytes()) is None


@pytest.mark.parametrize(
    ("head", "codec"),
    [
        (wav_header(16_000), "16-bit PCM"),
        (wav((b"JUNK", bytes(28)), fmt(7, 1, 8_000, 8)), "mu-law"),
        (wav(fmt(17, 1, 8_000, 4)), "another codec"),
        (wav(fmt(1, 1, 48_000, 24)), "another codec"),
        (b"RIFF\0\0\0\0WAVEJUNK" + bytes(2_000), ""),
        (wav((b"JUNK", bytes(70_000)), fmt(1, 1, 16_000, 16)), "16-bit PCM"),
        (wav(fmt(1, 2, 16_000, 16)), "several channels"),
        (wav(fmt(1, 0, 0, 16)), "another codec"),
        (phone_file("flac"), ""),
        (phone_file("stereo_flac"), "several channels"),
        (phone_file("opus"), "Opus"),
        (phone_file("ogg_flac"), "another codec"),
        (phone_file("webm"), "Opus"),
        (phone_file("fragmented"), "fragmented"),
        (behind_a_box(phone_file("fragmented")), "fragmented"),
        (behind_a_box(phone_file("m4a")), ""),
        (phone_file("m4a"), ""),
        (phone_file("amr"), ""),
    ],
)
def test_codec_is_detected_where_it_matters(head: bytes, codec: str):
    mime_type = sniff(head)

    assert mime_type is not None
    assert codec_of(head, mime_type) == codec


def test_each_type_has_a_name():
    assert {sniff(sound) for sound in SOUNDS} <= set(NAMES)
