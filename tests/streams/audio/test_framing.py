"""Files that consist of frames are recognized wherever they begin. PCM with the same bytes is not."""

import math
import struct
from array import array

import pytest

from streams.audio.formats import SNIFF_BYTES, identify, sniff
from streams.audio.signatures import AAC, FLAC, MP3, WAV
from tests.streams.audio.mp3_files import plain_mp3, tagged_mp3
from tests.streams.audio.phone_files import PHONE_TYPES, RARE_TYPES, phone_file
from tests.streams.audio.rare_files import ID3, big_id3, dts_frames, plain_wav

FRAMED = {
    **{
        name: phone_file(name, seconds=2) for name in ("aac", "mp2", "ac3", "eac3", "latm", "mpegts", "m2ts", "sbc")
    },
    "mp3 of 320 kbit/s": plain_mp3(seconds=1.0, sample_rate=44_100, kbps=320),
    "mp3 of 8 kbit/s": plain_mp3(seconds=3.0, sample_rate=8_000, kbps=8),
    "dts": dts_frames(),
    "swapped dts": dts_frames(swapped=True),
}
TYPES = {**PHONE_TYPES, **RARE_TYPES}


def type_of(name: str) -> str:
    return MP3 if "mp3" in name else "audio/vnd.dts" if "dts" in name else TYPES[name]


@pytest.mark.parametrize("name", FRAMED)
def test_a_file_may_begin_within_a_frame(name: str):
    found = {sniff(FRAMED[name][begin : begin + SNIFF_BYTES]) for begin in range(1_020)}

    assert found == {type_of(name)}


@pytest.mark.parametrize(
    "junk", [b"\r\n", bytes(64), bytes(range(256)), b"\xff" * 99], ids=["line", "0", "any", "1"]
)
@pytest.mark.parametrize("name", FRAMED)
def test_a_file_may_begin_behind_other_bytes(name: str, junk: bytes):
    found = identify(junk + FRAMED[name])

    assert found is not None
    assert found.mime_type == type_of(name)
    assert found.begin == len(junk) or name == "m2ts"


@pytest.mark.parametrize(
    ("file", "mime_type", "begin"),
    [
        (ID3 + phone_file("flac"), FLAC, len(ID3)),
        (ID3 + ID3 + phone_file("flac"), FLAC, 2 * len(ID3)),
        (big_id3() + phone_file("flac"), FLAC, len(big_id3())),
        (big_id3() + phone_file("aac"), AAC, len(big_id3())),
        (ID3 + plain_wav(), WAV, len(ID3)),
        (ID3 + bytes(3) + plain_mp3(), MP3, 0),
        (tagged_mp3(), MP3, 0),
        (big_id3() + plain_mp3(), MP3, 0),
        (ID3 + b"<!DOCTYPE html>", MP3, 0),
    ],
)
def test_a_tag_does_not_decide_the_type(file: bytes, mime_type: str, begin: int):
    assert identify(file) == (mime_type, begin)
    assert sniff(file) == (MP3 if file.startswith(big_id3()) else mime_type)


def test_many_tags_are_not_followed():
    assert identify(b"ID3\4\0\0\0\0\0\0" * 100_000) == (MP3, 0)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"\xff\xfb\x90\xc4", id="mp3"),
        pytest.param(b"\xff\xfd\x90\xc4", id="mp2"),
        pytest.param(b"\x0b\x77\0\0\x14\x40", id="ac3"),
        pytest.param(b"\x7f\xfe\x80\1\xfc\x3c\x3f\xf0", id="dts"),
        pytest.param(b"G\1\0\x10", id="mpegts"),
        pytest.param(b"\x9c\x31\xfd\0", id="sbc"),
    ],
)
@pytest.mark.parametrize("period", [4, 8, 188, 192, 208, 417, 418, 514, 768, 1024])
def test_a_periodic_wave_with_a_sync_word_is_pcm(frame: bytes, period: int):
    """Behind other samples. At the beginning, frames of silence are the same, too."""
    head = (b"\1\0" + (frame + bytes(period))[:period] * 800)[:SNIFF_BYTES]

    assert sniff(head) is None


@pytest.mark.parametrize("hertz", [500, 1_000, 16_000 / 94])
def test_a_loud_tone_of_the_period_of_packets_is_pcm(hertz: float):
    """Samples of 0x47.. come in each period, and the noise of their low bytes looks like different headers."""
    noise = (at * 7919 % 13 - 6 for at in range(SNIFF_BYTES // 2))
    values = (round(20_000 * math.sin(math.tau * hertz * at / 16_000)) + each for at, each in enumerate(noise))

    assert sniff(array("h", values).tobytes()) is None


def test_two_frames_are_not_enough_elsewhere():
    header = bytes(plain_mp3(sample_rate=24_000, kbps=48)[:4])
    pcm = struct.pack("<1600h", *(at * 7 % 311 for at in range(1_600)))
    frames = header + pcm[:140] + header + pcm[140:280]

    assert sniff(pcm[:100] + frames + pcm) is None
    assert sniff(pcm[:100] + frames + header + pcm) == MP3
