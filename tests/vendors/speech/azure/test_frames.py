"""Messages of vendor A's sockets, languages, hosts and audio chunks."""

import struct
from collections.abc import AsyncGenerator
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streams.audio.audio import parse_wav, wav_header
from streams.input_buffer import InputBuffer
from vendors.account import Account
from vendors.errors import Refused
from vendors.protocols import AudioFormat
from vendors.speech.azure.audio import PIECE_BYTES, Chunker, PcmFormat, read_pcm, send_delay_s
from vendors.speech.azure.frames import Frame, binary_frame, read_frame, text_frame, ticks_of
from vendors.speech.azure.languages import word_gap
from vendors.speech.azure.sockets import http_url, socket_url

NAMES = st.from_regex(r"[A-Za-z][A-Za-z-]{0,20}", fullmatch=True).filter(
    lambda name: name.lower() not in {"path", "x-requestid"}
)
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)
HEADERS = st.dictionaries(NAMES, VALUES, max_size=5)
PATHS = st.from_regex(r"[A-Za-z.]{1,20}", fullmatch=True)


@given(PATHS, HEADERS, st.text())
def test_text_messages_are_parsed_unchanged(path: str, headers: dict[str, str], body: str):
    body = body.encode("utf-8", "replace").decode()
    frame = read_frame(text_frame({"Path": path, "X-RequestId": "ab", **headers}, body))

    assert (frame.path, frame.request_id, frame.body) == (path.lower(), "ab", body.encode())
    for name, value in {name.lower(): value for name, value in headers.items()}.items():
        assert frame.headers[name] == value.strip()


@given(PATHS, HEADERS, st.binary(max_size=300))
@example("audio", {}, b"\r\n\r\n")
def test_binary_messages_are_parsed_unchanged(path: str, headers: dict[str, str], body: bytes):
    frame = read_frame(binary_frame({"Path": path, "X-RequestId": "ab", **headers}, body))

    assert (frame.path, frame.request_id, frame.body) == (path.lower(), "ab", body)


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_any_input_is_a_frame_or_a_value_error(message: bytes | str):
    with suppress(ValueError):
        assert isinstance(read_frame(message), Frame)


def test_headers_are_parsed_with_any_case_and_optional_space():
    frame = read_frame("X-REQUESTID:1f\r\npath: turn.START\r\nContent-Type:a:b\r\n\r\n{}\r\n\r\n")

    assert frame == Frame(
        "turn.start", "1f", b"{}\r\n\r\n", {"x-requestid": "1f", "path": "turn.START", "content-type": "a:b"}
    )


def test_service_may_end_its_binary_header_with_a_blank_line():
    head = b"Path:audio\r\nX-StreamId:9\r\n\r\n"
    frame = read_frame(struct.pack(">H", len(head)) + head + b"\1\2")

    assert (frame.path, frame.headers["x-streamid"], frame.body) == ("audio", "9", b"\1\2")


@pytest.mark.parametrize(
    "message",
    [
        b"", b"\0", b"\0\x05Path", b"\xff\xff" + b"a:b\r\n" * 20_000, b"\0\x04\xff\xff\xff\xff", b"\0\0", "",
        "no colon\r\n\r\n",
    ],
    ids=["nothing", "half a length", "short", "huge", "not ASCII", "no header", "empty", "no colon"],
)  # fmt: skip
def test_malformed_messages_raise_value_error(message: bytes | str):
    with pytest.raises(ValueError, match=r".+"):
        read_frame(message)


def test_times_are_numbers_or_numbers_in_strings():
    times = [7, "7", 7.5, None, "soon", [7], True, -7, 1e300, "NaN"]
    assert [ticks_of({"Offset": time}, "Offset") for time in times] == [7, 7, 7] + [0] * 7
    assert ticks_of({}, "Offset") == 0


def test_some_languages_have_no_word_gaps():
    assert [word_gap(code) for code in ("en-US", "ja-JP", "zh_TW", "cmn", "ko", "th", "?")] == [
        " ", "", "", "", " ", "", " ",
    ]  # fmt: skip


@pytest.mark.parametrize("host", ["westus.api.cognitive", "westus.tts.speech", "westus.stt.speech"])
def test_region_has_a_host_for_each_service(host: str):
    account = Account("main", "vendor_a_audio", f"https://{host}.microsoft.com")

    assert (
        http_url(account, "/tts/cognitiveservices/v1")
        == "https://westus.tts.speech.microsoft.com/cognitiveservices/v1"
    )
    assert (
        socket_url(account, "/stt/speech/universal/v2", {"language": "en-US"})
        == "https://westus.stt.speech.microsoft.com/stt/speech/universal/v2?language=en-US"
    )


@pytest.mark.parametrize("cloud", ["azure.us", "azure.cn"])
def test_other_clouds_use_their_own_domain(cloud: str):
    account = Account("main", "vendor_a_audio", f"https://x1.api.cognitive.{cloud}")

    assert socket_url(account, "/tts/a") == f"https://x1.tts.speech.{cloud}/tts/a"


@pytest.mark.parametrize("base", ["https://mine.cognitiveservices.azure.com", "http://127.0.0.1:81/azure"])
def test_a_custom_domain_has_all_services_below_it(base: str):
    account = Account("main", "vendor_a_audio", base)

    assert http_url(account, "/tts/cognitiveservices/v1") == f"{base}/tts/cognitiveservices/v1"
    assert socket_url(account, "/stt/speech/universal/v2") == f"{base}/stt/speech/universal/v2"


def test_header_of_a_stream_has_no_sizes():
    header = PcmFormat(16_000).header()

    assert (len(header), header[4:8], header[40:]) == (44, bytes(4), bytes(4))
    reported = parse_wav(header)
    assert reported is not None
    assert (reported.sample_rate, reported.channels, reported.bits) == (16_000, 1, 16)


@given(
    st.lists(st.binary(max_size=20_000), max_size=6), st.integers(1, 2), st.integers(0, 9_000).map(lambda n: n * 4)
)
def test_messages_contain_complete_samples_after_the_offset(pieces: list[bytes], channels: int, skip: int):
    pcm = PcmFormat(16_000, channels)
    cutter = Chunker(skip)
    messages = [message for piece in pieces for message in cutter.feed(pcm, piece)]

    whole = b"".join(pieces)[skip:]
    assert b"".join(messages) == whole[: len(whole) // pcm.frame_bytes * pcm.frame_bytes]
    assert all(0 < len(message) <= PIECE_BYTES and len(message) % pcm.frame_bytes == 0 for message in messages)


@given(st.integers(0, 10**10), st.sampled_from([8_000, 16_000, 44_100]), st.integers(1, 2))
def test_byte_offsets_of_times_are_exact_to_one_sample(ticks: int, rate: int, channels: int):
    pcm = PcmFormat(rate, channels)

    assert 0 <= ticks - pcm.ticks(pcm.offset(ticks)) <= 10**7 // rate + 1


def test_five_seconds_are_sent_immediately_and_the_rest_at_double_speed():
    assert [
        send_delay_s(4.9, 0),
        send_delay_s(5, 0),
        send_delay_s(9, 0),
        send_delay_s(9, 1.5),
        send_delay_s(9, 5),
    ] == [0, 0, 2, 0.5, 0]


async def _pcm(audio: bytes, mime_type: str, cut: int) -> list[tuple[PcmFormat, bytes]]:
    class Cut:
        async def read(self) -> AsyncGenerator[bytes]:
            for at in range(0, len(audio), cut):
                yield audio[at : at + cut]

    return [item async for item in read_pcm("acme", Cut(), AudioFormat(mime_type, 16_000))]


@pytest.mark.parametrize("cut", [1, 7, 44, 45, 5000])
async def test_samples_of_a_wav_are_found_for_every_split(cut: int):
    samples = bytes(range(200))
    header = wav_header(44_100, channels=2, data_bytes=len(samples))
    junk = b"JUNK" + (10_001).to_bytes(4, "little") + bytes(10_002)
    wav = header[:12] + junk + header[12:] + samples + b"LIST\x04\0\0\0INFO"
    pieces = await _pcm(wav, "audio/wav", cut)

    assert {pcm for pcm, _ in pieces} == {PcmFormat(44_100, 2)}
    assert b"".join(piece for _, piece in pieces) == samples


@pytest.mark.parametrize(
    "wav",
    [b"RIFF....NOPE" * 9, wav_header(8_000, bits=8) + b"x", b"RIFF\0\0\0\0WAVEdata\0\0\0\0\1\0\1\0"],
    ids=["no WAV", "8 bits", "no format"],
)
async def test_unsupported_wav_is_refused(wav: bytes):
    with pytest.raises(Refused, match=r"acme (does not accept|only accepts)"):
        await _pcm(wav, "audio/wav", 4096)


async def test_pcm_is_passed_on_unchanged():
    buffer = InputBuffer()
    buffer.write(b"RIFF")
    buffer.end()

    assert [item async for item in read_pcm("acme", buffer, AudioFormat("audio/pcm", 8_000))] == [
        (PcmFormat(8_000), b"RIFF")
    ]
