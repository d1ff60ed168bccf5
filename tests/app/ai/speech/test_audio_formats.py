"""Audio as phones record it is recognized as it is, converted for the recognizer, or refused with its format."""

from collections.abc import Callable

import pytest

from streams.audio.audio import wav_header
from tests.app.ai.conftest import Talk
from tests.app.ai.speech.ears import coded, ears, heard, said
from tests.peers.sse_client import named
from tests.running.servers import Server
from tests.streams.audio.mp3_files import plain_mp3, tagged_mp3, tone
from tests.streams.audio.pcm_samples import silence
from tests.streams.audio.phone_files import RARE_TYPES, behind_a_box, phone_file, silk, stereo_wav, unsized_flac
from tests.streams.audio.rare_files import (
    mp4_segment,
    multipart,
    plain_wav,
    webm_cluster,
)
from vendors.sandbox.server import Running

PAGE = b"<!DOCTYPE html><title>Sign in to the network</title>".ljust(4_000)
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".ljust(4_000, b"\x81")
ERROR = b'{"error": {"code": 404, "message": "the recording does not exist"}}'.ljust(4_000)
EVERY_TYPE = (
    "PCM, WAV, Ogg, FLAC, MP3, MP4, WebM, AMR, AMR-WB, AAC, CAF, AIFF, RF64, WMA, AU, W64, VOC, WavPack, LATM, "
    "QCP, MPEG-TS, QuickTime, MP2, AC-3, E-AC-3, DTS, MPEG-PS, RIFX, Monkey's Audio, TTA, Musepack SV7, "
    "Musepack SV8, DSF, DFF, DSS, SoX, NUT, SBC, AVI, FLV, IRCAM or IEC 61937"
)
UNCONVERTED = f"which this server cannot convert: send {EVERY_TYPE}"


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.mark.parametrize(
    ("name", "platform"),
    [
        ("amr", "vendor_a_audio"),
        ("caf", "vendor_a_audio"),
        ("fragmented", "vendor_a_audio"),
        ("adpcm", "vendor_a_audio"),
        ("aac", "vendor_b_audio"),
        ("fragmented", "vendor_b_audio"),
        ("wma", "vendor_b_audio"),
        ("aiff", "vendor_d_audio"),
        ("rf64", "vendor_d_audio"),
        ("ogg_flac", "vendor_d_audio"),
        ("au", "vendor_b_audio"),
        ("mp2", "vendor_b_audio"),
        ("ac3", "vendor_d_audio"),
        ("mpegps", "vendor_a_audio"),
        *(
            pytest.param(name, platform, marks=pytest.mark.soak)
            for name in ("w64", "voc", "wavpack", *sorted(RARE_TYPES.keys() - {"w64", "voc", "wavpack", "au"}))
            for platform in ("vendor_a_audio", "vendor_b_audio", "vendor_d_audio")
        ),
    ],
)
async def test_recordings_are_converted_for_a_recognizer_that_does_not_accept_them(
    talk: Talk, server: Server, sandbox: Running, name: str, platform: str
) -> None:
    await ears(server, sandbox, "one", platform, **({"model": "whisper-1"} if platform == "vendor_b_audio" else {}))

    seen = await said(talk, phone_file(name), "one")

    assert seen[-1].name == "end", seen[-1]
    assert named(seen, "user_input") == ["I heard 0.5 seconds of sound."]


async def test_a_recognizer_gets_a_recording_that_it_accepts_as_it_is(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await ears(server, sandbox, "one", "vendor_d_audio")

    seen = await said(talk, phone_file("amr"), "one")

    assert seen[-1].name == "end", seen[-1]
    (call,) = [entry for entry in sandbox.bill.since(0) if heard(entry)]
    assert call.asked["encoding"] == "AMR"


@pytest.mark.parametrize(
    ("audio", "reported"),
    [
        (PAGE, f"audio is an HTML page: send {EVERY_TYPE}"),
        (ERROR, f"audio is a JSON text: send {EVERY_TYPE}"),
        (PNG, f"audio is a PNG image: send {EVERY_TYPE}"),
        (b"\r\n" + plain_wav(), f"audio is a file behind white space: send {EVERY_TYPE}"),
        (coded(plain_wav()), f"audio is text in base64 (encode audio once): send {EVERY_TYPE}"),
        (b"Bad Gateway. " * 300, f"audio is text: send {EVERY_TYPE}"),
        (b"MThd\0\0\0\6" + bytes(4_000), f"audio is MIDI: send {EVERY_TYPE}"),
        (b"\x7fELF\2\1\1" + bytes(4_000), f"audio is a program: send {EVERY_TYPE}"),
        (b"SQLite format 3\0" + bytes(4_000), f"audio is an SQLite database: send {EVERY_TYPE}"),
        (silk(), f"audio is SILK, {UNCONVERTED}"),
        (b"caff\0\1\0\0" + bytes(4_000), "audio is CAF, which is damaged"),
        (mp4_segment(), f"audio is a part of an MP4 file without its beginning, {UNCONVERTED}"),
        (webm_cluster(), f"audio is a part of a WebM file without its beginning, {UNCONVERTED}"),
        (b"ADIF" + bytes(4_000), f"audio is AAC in ADIF, {UNCONVERTED}"),
        (b"\0\0\0\x18ftypheic" + bytes(4_000), f"audio is a HEIF image: send {EVERY_TYPE}"),
        (multipart(plain_wav()), f"audio is a multipart form (send only the file): send {EVERY_TYPE}"),
        (b"\xff\xfe" + ("Bad Gateway. " * 90).encode("utf-16-le"), f"audio is text: send {EVERY_TYPE}"),
        (phone_file("caf", silent=True), "no speech was heard"),
        (phone_file("aac", seconds=0.02), "audio is too short"),
    ],
    ids=[
        "page",
        "error",
        "image",
        "misplaced",
        "base64",
        "text",
        "midi",
        "program",
        "database",
        "silk",
        "damaged",
        "segment",
        "cluster",
        "adif",
        "heic",
        "multipart",
        "utf-16",
        "silence",
        "short",
    ],
)
async def test_no_vendor_is_asked_about_other_files(
    talk: Talk, server: Server, sandbox: Running, audio: bytes, reported: str
) -> None:
    await ears(server, sandbox, "one", "vendor_a_audio")
    await ears(server, sandbox, "two", "vendor_b_audio", model="whisper-1")

    seen = await said(talk, audio, "one", "two")

    assert seen[-1].name == "error"
    assert seen[-1].content["error"]["message"] == f"invalid_parameter: {reported}"
    assert not list(sandbox.bill.since(0))


async def test_without_decoders_the_recognizers_decide_what_is_accepted(
    talk: Talk, server: Server, sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.services.resources.converter, "types", frozenset())
    await ears(server, sandbox, "one", "vendor_a_audio")
    await ears(server, sandbox, "two", "vendor_d_audio")

    refused = await said(talk, phone_file("aac"), "one", "two")
    seen = await said(talk, phone_file("amr"), "one", "two")

    assert refused[-1].content["error"]["message"] == (
        "invalid_parameter: audio is AAC, which this server cannot convert: send PCM, WAV (16-bit PCM or mu-law), "
        "Ogg (Opus), FLAC, MP3, WebM (Opus), AMR or AMR-WB"
    )
    assert named(seen, "user_input") == ["I heard 0.5 seconds of sound."]


async def test_more_than_a_minute_is_recognized_in_pieces_that_end_at_a_pause(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await ears(server, sandbox, "one", "vendor_d_audio")
    audio = tone(seconds=52, sample_rate=16_000) + silence(2) + tone(seconds=16, sample_rate=16_000)

    for sent in (audio, wav_header(16_000, data_bytes=len(audio)) + audio):
        seen = await said(talk, sent, "one")
        (text,) = named(seen, "user_input")
        first, second = (float(part.split()[0]) for part in text.split("I heard ")[1:])
        assert 52 <= first <= 54
        assert first + second == pytest.approx(70, abs=0.1)


SILENT = ("m4a", "webm", "flac", "mulaw", "wav_8", "mp3", "opus", "wav_24", "wav_float", "alaw")
"""Of files that recognizers accept. The last ones are tested with `soak`."""


@pytest.mark.parametrize(
    ("audio", "reported"),
    [
        *(
            pytest.param(
                lambda name=name: phone_file(name, silent=True),
                "no speech was heard",
                id=f"silent {name}",
                marks=() if at < 5 else pytest.mark.soak,
            )
            for at, name in enumerate(SILENT)
        ),
        pytest.param(lambda: phone_file("m4a", seconds=0.02), "audio is too short", id="short m4a"),
        pytest.param(lambda: phone_file("opus")[:100], "audio is too short", id="header of ogg"),
        pytest.param(lambda: b"#!AMR\n", "audio is too short", id="header of amr"),
        pytest.param(lambda: tagged_mp3()[:200], "audio is too short", id="header of mp3", marks=pytest.mark.soak),
    ],
)
async def test_nothing_is_asked_about_accepted_files_without_sound(
    talk: Talk, server: Server, sandbox: Running, audio: Callable[[], bytes], reported: str
) -> None:
    await ears(server, sandbox, "one", "vendor_b_audio", model="whisper-1")
    await ears(server, sandbox, "two", "vendor_d_audio")

    seen = await said(talk, audio(), "one", "two")

    assert seen[-1].content["error"]["message"] == f"invalid_parameter: {reported}"
    assert not list(sandbox.bill.since(0))


async def test_a_file_whose_sound_cannot_be_examined_is_passed_on(
    talk: Talk, server: Server, sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.services.resources.converter, "types", frozenset())
    await ears(server, sandbox, "one", "vendor_b_audio", model="whisper-1")

    seen = await said(talk, phone_file("flac", silent=True), "one")

    assert seen[-1].name == "end", seen[-1]


async def test_segments_of_a_broadcast_are_converted(talk: Talk, server: Server, sandbox: Running) -> None:
    """AAC behind an ID3 tag, and AAC that begins within a frame. Both are no MP3 and no PCM."""
    await ears(server, sandbox, "one", "vendor_b_audio", model="whisper-1")
    aac = phone_file("aac")

    for segment in (b"ID3\4\0\0\0\0\0\x3fPRIV" + bytes(59) + aac, aac[50:]):
        seen = await said(talk, segment, "one")
        assert seen[-1].name == "end", seen[-1]
        assert named(seen, "user_input")[0].startswith("I heard 0.")


async def test_fragments_are_found_behind_other_boxes(talk: Talk, server: Server, sandbox: Running) -> None:
    await ears(server, sandbox, "one", "vendor_b_audio", model="whisper-1")

    seen = await said(talk, behind_a_box(phone_file("fragmented")), "one")

    assert seen[-1].name == "end", seen[-1]
    assert named(seen, "user_input") == ["I heard 0.5 seconds of sound."]


@pytest.mark.parametrize("platform", ["vendor_a_audio", "vendor_d_audio"])
@pytest.mark.parametrize(
    ("audio", "needs_decoder"),
    [
        pytest.param(stereo_wav(rate=16_000), False, id="wav"),
        pytest.param(stereo_wav(rate=48_000), False, id="wav of 48 kHz"),
        pytest.param(phone_file("stereo_flac"), True, id="flac"),
    ],
)
async def test_several_channels_are_mixed_for_recognizers_that_accept_only_one(
    talk: Talk,
    server: Server,
    sandbox: Running,
    monkeypatch: pytest.MonkeyPatch,
    *,
    platform: str,
    audio: bytes,
    needs_decoder: bool,
) -> None:
    await ears(server, sandbox, "one", platform)

    for types in [server.services.resources.converter.types, *([] if needs_decoder else [frozenset[str]()])]:
        monkeypatch.setattr(server.services.resources.converter, "types", types)
        seen = await said(talk, audio, "one")
        assert seen[-1].name == "end", seen[-1]
        (text,) = named(seen, "user_input")
        assert platform == "vendor_a_audio" or text == "I heard 0.5 seconds of sound."


@pytest.mark.parametrize(
    "audio",
    [
        lambda: phone_file("webm", seconds=70),
        lambda: phone_file("mulaw", seconds=70),
        pytest.param(lambda: phone_file("opus", seconds=70), marks=pytest.mark.soak),
        pytest.param(lambda: phone_file("opus", seconds=35) * 2, marks=pytest.mark.soak),
        pytest.param(lambda: phone_file("flac", seconds=70), marks=pytest.mark.soak),
        pytest.param(lambda: unsized_flac(seconds=70), marks=pytest.mark.soak),
        pytest.param(lambda: phone_file("amr", seconds=70), marks=pytest.mark.soak),
        pytest.param(lambda: phone_file("m4a", seconds=70), marks=pytest.mark.soak),
    ],
    ids=["webm", "mulaw", "ogg", "chained ogg", "flac", "flac of unknown length", "amr", "m4a"],
)
async def test_a_long_file_of_any_type_is_converted_and_cut(
    talk: Talk, server: Server, sandbox: Running, audio: Callable[[], bytes]
) -> None:
    await ears(server, sandbox, "one", "vendor_d_audio")

    seen = await said(talk, audio(), "one")

    assert seen[-1].name == "end", seen[-1]
    heard_s = [float(part.split()[0]) for part in named(seen, "user_input")[0].split("I heard ")[1:]]
    assert len(heard_s) == 2
    assert sum(heard_s) == pytest.approx(70, abs=0.2)


async def test_a_file_of_unknown_length_is_not_sent_to_a_recognizer_with_a_limit(
    talk: Talk, server: Server, sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.services.resources.converter, "types", frozenset())
    await ears(server, sandbox, "one", "vendor_d_audio")

    seen = await said(talk, unsized_flac(), "one")

    (attempt,) = seen[-1].content["error"]["extra"]["attempts"]
    assert attempt["message"].endswith("does not accept FLAC of unknown length, and this server cannot convert it")


async def test_a_long_file_of_another_type_is_converted_or_the_next_strategy_is_tried(
    talk: Talk, server: Server, sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ears(server, sandbox, "one", "vendor_d_audio")
    await ears(server, sandbox, "two", "vendor_b_audio", model="whisper-1")
    audio = plain_mp3(seconds=70.0)

    converted = await said(talk, audio, "one")
    monkeypatch.setattr(server.services.resources.converter, "types", frozenset())
    failed = await said(talk, audio, "one")
    seen = await said(talk, audio, "one", "two")

    assert len(named(converted, "user_input")[0].split("I heard ")[1:]) == 2
    (attempt,) = failed[-1].content["error"]["extra"]["attempts"]
    assert attempt["message"].endswith(
        "does not accept MP3 of more than 60 s, and this server cannot convert it"
    ), attempt
    assert named(seen, "user_input")[0].startswith("I heard 70")
