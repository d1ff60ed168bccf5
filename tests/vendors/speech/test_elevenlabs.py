"""Speech by ElevenLabs: requests, raw audio, and lines with times that give mouth shapes."""

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from streams.wire.codec import dumps, loads
from streams.wire.errors import ConfigInvalid, InvalidParameter
from tests.streams.pieces import by_byte, split
from tests.vendors.http.upstream import Upstream, cut, plain, streaming
from vendors.account import Account, SpeechSpec
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage, Viseme, Visemes
from vendors.speech.elevenlabs import ElevenLabsSpeech, TimedLines


def voice(http: VendorHttp | None, url: str, **spec: Any) -> ElevenLabsSpeech:
    account = Account("main", "vendor_c", url, SecretStr("k1"))
    fields = {"model": "eleven_flash_v2_5", "voice": "v1", **spec}
    return ElevenLabsSpeech(http, account, SpeechSpec(**fields))  # type: ignore[arg-type]


async def spoken(client: ElevenLabsSpeech, text: str = "Hi.") -> list[SpeechItem]:
    async with client.speak(text) as items:
        return [item async for item in items]


def line(audio: bytes = b"", letters: str = "", *, begin: float = 0.0, **more: Any) -> bytes:
    """Return a line whose letters last 0.1 s each."""
    times = alignment(letters, begin) if letters else None
    value = {"audio_base64": b64encode(audio).decode(), "alignment": times, "normalized_alignment": times, **more}
    return dumps(value) + b"\n"


def alignment(letters: str, begin: float) -> dict[str, Any]:
    return {
        "characters": list(letters),
        "character_start_times_seconds": [begin + index / 10 for index in range(len(letters))],
        "character_end_times_seconds": [begin + (index + 1) / 10 for index in range(len(letters))],
    }


def read(pieces: list[bytes], letters: int = 100) -> list[SpeechItem]:
    lines = TimedLines("vendor_c", character_count=letters)
    return [*(item for piece in pieces for item in lines.feed(piece)), *lines.end()]


async def test_raw_audio_is_passed_on(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([b"one ", b"two"], content_type="audio/mpeg"))

    announced, *audio = await spoken(voice(http, upstream.url))

    assert announced == SpeechFormat("audio/mpeg", 44_100)
    assert b"".join(item.audio for item in audio if isinstance(item, AudioBytes)) == b"one two"
    (seen,) = upstream.seen
    assert (seen.path, seen.query) == ("/v1/text-to-speech/v1/stream", {"output_format": "mp3_44100_128"})
    assert seen.headers["xi-api-key"] == "k1"
    assert loads(seen.body) == {"model_id": "eleven_flash_v2_5", "text": "Hi."}


async def test_requests_contain_the_settings_of_strategy_and_request(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([b"ab"], content_type="audio/pcm"))
    options = {"stability": 0.3, "use_speaker_boost": False, "extra": {"seed": 7}, "output_format": "pcm_16000"}
    spec = {"speed": 4.0, "language_code": "de-DE", "audio_format": "wav", "options": options}

    announced, *_ = await spoken(voice(http, upstream.url, **spec))
    await spoken(
        voice(http, upstream.url, **spec | {"speed": 0.25, "model": "eleven_multilingual_v2", "options": {}})
    )

    first, second = upstream.seen
    assert announced == SpeechFormat("audio/wav", 16_000)
    assert first.query == {"output_format": "pcm_16000"}
    assert loads(first.body) == {
        "model_id": "eleven_flash_v2_5",
        "language_code": "de",
        "voice_settings": {"stability": 0.3, "use_speaker_boost": False, "speed": 1.2},
        "seed": 7,
        "text": "Hi.",
    }
    assert second.query == {"output_format": "pcm_24000"}
    assert loads(second.body) == {
        "model_id": "eleven_multilingual_v2",
        "voice_settings": {"speed": 0.7},
        "text": "Hi.",
    }


async def test_voice_of_a_request_names_no_other_path(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([b"ab"], content_type="audio/mpeg"))

    await spoken(voice(http, upstream.url, voice="a/b?c#d"))

    assert upstream.seen[0].path == "/v1/text-to-speech/a/b?c#d/stream", "encoded on the wire"
    assert upstream.seen[0].query == {"output_format": "mp3_44100_128"}


def test_configs_that_do_not_fit_are_refused():
    with pytest.raises(ConfigInvalid, match="voice is not set"):
        voice(None, "http://x", voice="")
    with pytest.raises(InvalidParameter, match="output_format pcm_16000 is not for audio_format mp3"):
        voice(None, "http://x", options={"output_format": "pcm_16000"})
    with pytest.raises(InvalidParameter, match="output_format"):
        voice(None, "http://x", options={"output_format": "ulaw_8000"})


async def test_lines_with_times_give_shapes_before_their_audio(http: VendorHttp, upstream: Upstream):
    lines = [line(b"one ", "sh", begin=0.05), b"\n", line(), line(b"two", "ow", begin=0.3)]
    answer = streaming(lines, content_type="application/json")
    upstream.respond_with(answer)

    items = await spoken(voice(http, upstream.url, need_viseme=True), "show")

    assert upstream.seen[0].path == "/v1/text-to-speech/v1/stream/with-timestamps"
    assert items == [
        SpeechFormat("audio/mpeg", 44_100),
        Visemes([Viseme(50, 16)]),
        AudioBytes(b"one "),
        Visemes([Viseme(300, 9), Viseme(500, 0)]),
        AudioBytes(b"two"),
    ]


async def test_billed_characters_are_reported_before_the_audio(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(
        plain(200, b"ab", Content_Type="audio/mpeg", x_character_count="3"),
        plain(200, b"ab", Content_Type="audio/mpeg", x_character_count="?"),
    )

    assert (await spoken(voice(http, upstream.url)))[1:] == [Usage(3, 0), AudioBytes(b"ab")]
    assert (await spoken(voice(http, upstream.url)))[1:] == [AudioBytes(b"ab")]


def test_mouth_shapes_follow_the_phonemes_instead_of_the_spelling():
    both = line(b"ab", "mm", alignment=alignment("2!", 0.0))

    assert read([both], letters=2) == [Visemes([Viseme(0, 21), Viseme(200, 0)]), AudioBytes(b"ab")]


def test_the_mouth_is_closed_if_letters_are_missing():
    assert read([line(b"ab", "m")]) == [Visemes([Viseme(0, 21)]), AudioBytes(b"ab"), Visemes([Viseme(100, 0)])]
    assert read([line(b"ab", "m.")]) == [Visemes([Viseme(0, 21), Viseme(100, 0)]), AudioBytes(b"ab")]
    assert read([line(b"ab")]) == [AudioBytes(b"ab")], "none where the vendor reports no times"


def test_times_are_ascending():
    items = read([line(letters="mo", begin=1.0), line(letters="mo", begin=0.5)])

    shapes = [shape.offset_ms for item in items if isinstance(item, Visemes) for shape in item.visemes]
    assert shapes == sorted(shapes)


def test_letters_of_other_scripts_have_shapes():
    assert read([line(b"", "你")]) == [Visemes([Viseme(0, 19), Viseme(50, 1)]), Visemes([Viseme(100, 0)])]


@pytest.mark.parametrize("broken", [b"{\n", b'{"audio_base64": "a"}\n', b"x" * 5_000_000])
def test_lines_without_readable_audio_are_errors(broken: bytes):
    with pytest.raises(Garbled):
        read([broken])


ODD_TIMES = [
    None, 7, [], {}, {"characters": None}, {**alignment("ab", 0), "characters": ["a"]},
    {**alignment("a", 0), "character_end_times_seconds": ["x"]}, {**alignment("a", 0), "characters": [None, 1]},
    {**alignment("a", 0), "character_start_times_seconds": [None]},
]  # fmt: skip


@pytest.mark.parametrize("times", ODD_TIMES)
def test_audio_plays_without_times_or_with_those_of_the_written_text(times: Any):
    assert read([b"[]\n1\n", line(b"ab", alignment=times, normalized_alignment=times)]) == [AudioBytes(b"ab")]
    shapes, audio = read([line(b"ab", "m", normalized_alignment=times)], letters=1)
    assert (shapes, audio) == (Visemes([Viseme(0, 21), Viseme(100, 0)]), AudioBytes(b"ab"))


def test_times_are_those_of_the_original_script():
    """The vendor romanizes some texts. Clients know only the characters of the original."""
    romanized = line(b"ab", alignment=alignment("你好", 0), normalized_alignment=alignment("ni hao", 0))

    (shapes, audio), (plain, _) = read([romanized], letters=2), read([line(b"ab", "你好")], letters=2)

    assert (shapes, audio) == (plain, AudioBytes(b"ab"))


def test_times_of_words_for_numbers_are_those_that_are_spoken():
    written, spoken = alignment("é2", 0), alignment("é mo", 0)

    shapes, _ = read([line(b"ab", alignment=written, normalized_alignment=spoken)], letters=2)

    assert isinstance(shapes, Visemes)
    assert [shape.viseme_id for shape in shapes.visemes][-3:] == [21, 8, 0]


@pytest.mark.parametrize(
    ("detail", "reported", "retryable"),
    [
        ({"status": "system_busy", "message": "too\n busy"}, "too busy", True),
        ({"status": "quota_exceeded", "message": "no credits"}, "no credits", False),
        ("plain words", "plain words", False),
    ],
)
async def test_errors_in_place_of_audio_are_reported(
    http: VendorHttp, upstream: Upstream, detail: Any, reported: str, *, retryable: bool
):
    upstream.respond_with(plain(200, dumps({"detail": detail}), Content_Type="application/json"))

    with pytest.raises(Refused, match=f"vendor_c broke off with an error: {reported}") as fault:
        await spoken(voice(http, upstream.url, need_viseme=True))
    assert fault.value.retryable is retryable


@pytest.mark.parametrize(
    ("status", "detail", "reported"),
    [
        (401, {"status": "quota_exceeded", "message": "no credits"}, ("no credits", "quota_exceeded")),
        (401, {"status": "invalid_api_key", "message": "bad key"}, ("bad key", "invalid_api_key")),
        (429, {"status": "system_busy", "message": "busy"}, ("busy", "system_busy")),
        (
            422,
            [{"loc": ["body", "text"], "msg": "field required", "type": "missing"}],
            ("field required", "missing"),
        ),
        (400, "plain words", ("plain words", None)),
    ],
)
async def test_refusals_use_the_vendors_messages(
    http: VendorHttp, upstream: Upstream, status: int, detail: Any, reported: tuple[str, str | None]
):
    body = dumps({"detail": detail})
    upstream.respond_with(plain(status, body, Content_Type="application/json", retry_after_ms="10"))

    with pytest.raises(Refused, match=f"answered {status}: {reported[0]}") as fault:
        await spoken(voice(http, upstream.url))

    assert (fault.value.extra.get("code"), fault.value.retryable) == (reported[1], status == 429)
    assert len(upstream.seen) == (2 if status == 429 else 1)


@pytest.mark.parametrize(
    ("content_type", "need_viseme"),
    [("application/json", False), ("text/html", False), ("text/html", True)],
)
async def test_answers_of_an_unexpected_type_are_errors(
    http: VendorHttp, upstream: Upstream, content_type: str, *, need_viseme: bool
):
    upstream.respond_with(plain(200, b"{}", Content_Type=content_type))

    with pytest.raises(Garbled, match=f"answered with {content_type}"):
        await spoken(voice(http, upstream.url, need_viseme=need_viseme))


async def test_truncated_audio_is_an_error(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([b"ab"], end=cut, content_type="audio/mpeg"))

    with pytest.raises(VendorError) as fault:
        await spoken(voice(http, upstream.url))
    assert fault.value.retryable


LINES = st.sampled_from(
    [
        line(b"one", "th"),
        line(b"two", "e end", begin=0.2),
        line(),
        b"\n",
        line(b"x", "😀é"),
        line(b"y")[:-1],
        b" \r\n",
    ]
)


@given(st.lists(LINES, max_size=5).map(b"".join), st.lists(st.integers(0, 600), max_size=8), st.integers(0, 9))
def test_every_split_is_read_the_same(stream: bytes, at: list[int], letters: int):
    def result(pieces: list[bytes]) -> list[SpeechItem | str]:
        found: list[SpeechItem | str] = []
        lines = TimedLines("vendor_c", character_count=letters)
        try:
            for piece in pieces:
                found.extend(lines.feed(piece))
            found.extend(lines.end())
        except Garbled as error:
            found.append(str(error))
        return found

    assert result(split(stream, at)) == result([stream])
    assert result(by_byte(stream)) == result([stream])
