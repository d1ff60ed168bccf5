"""The ElevenLabs client with the sandbox, and the sandbox with the SDK of the vendor."""

from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from streams.audio.mp3 import mp3_duration_ms
from tests.sampling import paired
from tests.vendors.sandbox_calls import AT, BROKEN, Open, Outcome, calls, left_while_waiting, outcome
from vendors.account import Account, SpeechSpec
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.protocols import SpeechFormat, Usage, Viseme, Visemes
from vendors.sandbox.content import speech, speech_ms
from vendors.sandbox.faults import Fault, key_of
from vendors.sandbox.server import Running
from vendors.speech.elevenlabs import ElevenLabsSpeech

if TYPE_CHECKING:
    from elevenlabs import AsyncElevenLabs

SDK = pytest.mark.xdist_group("elevenlabs")  # One worker imports the SDK.

TEXT = "Show me the harbour, please"
VOICE = "21m00Tcm4TlvDq8ikWAM"


@pytest.fixture
def call(http: VendorHttp, sandbox: Running) -> Open:
    def speak(key: str, text: str = TEXT, **spec: object):
        account = Account("main", "vendor_c", f"{sandbox.url}/elevenlabs", SecretStr(key))
        fields = {"model": "eleven_flash_v2_5", "voice": VOICE, "audio_format": "wav", **spec}
        return ElevenLabsSpeech(http, account, SpeechSpec(**fields)).speak(text)

    return speak


async def test_audio_without_shapes_is_complete_and_billed(call: Open, sandbox: Running):
    found = await outcome(call("k1", speed=4.0, language_code="en-US"))

    assert found.error is None
    assert found.items[:2] == [SpeechFormat("audio/wav", 24_000), Usage(len(TEXT), 0)]
    assert found.audio == speech(TEXT, 24_000, speed=1.2)
    (entry,) = calls(sandbox)
    assert (entry.vendor, entry.stage, entry.how) == ("elevenlabs", "tts", "done")
    assert entry.billed == {"characters": len(TEXT)}


async def test_mp3_has_the_duration_of_the_speech(call: Open):
    found = await outcome(call("k1", audio_format="mp3"))

    assert found.items[0] == SpeechFormat("audio/mpeg", 44_100)
    assert mp3_duration_ms(found.audio) == pytest.approx(speech_ms(TEXT), abs=100)


async def test_shapes_precede_their_audio(call: Open):
    found = await outcome(call("k1", need_viseme=True))

    assert found.audio == speech(TEXT, 24_000)
    heard_ms = 0
    for item in found.items:
        if isinstance(item, Visemes):
            assert all(shape.offset_ms >= heard_ms - 1 for shape in item.visemes), "none belongs to what was heard"
        else:
            heard_ms += len(getattr(item, "audio", b"")) // 48
    shapes = [shape for item in found.kinds(Visemes) for shape in item.visemes]
    assert shapes[0] == Viseme(0, 16)
    assert shapes[-1] == Viseme(speech_ms(TEXT), 0)
    assert [shape.offset_ms for shape in shapes] == sorted({shape.offset_ms for shape in shapes})


REFUSALS = {
    Fault.UNAUTHORIZED: (401, False),
    Fault.OUT_OF_QUOTA: (401, False),
    Fault.RATE_LIMITED: (429, True),
    Fault.SERVER_ERROR: (500, True),
    Fault.UNAVAILABLE: (429, True),
}


@pytest.mark.parametrize(("fault", "need_viseme"), paired([*REFUSALS], [False, True]))
async def test_refusals_are_reported_with_their_status(
    call: Open, sandbox: Running, fault: Fault, *, need_viseme: bool
):
    found = await outcome(call(key_of(fault=fault, retry_after_s=9), need_viseme=need_viseme))

    assert found.items == []
    assert isinstance(found.error, Refused)
    assert (found.error.vendor_status, found.error.retryable) == REFUSALS[fault]
    asked_again = fault in {Fault.SERVER_ERROR, Fault.UNAVAILABLE}
    assert [entry.how for entry in calls(sandbox)] == ["fault"] * (2 if asked_again else 1)


@pytest.mark.parametrize(("position", "outputs"), AT)
@pytest.mark.parametrize(("fault", "error"), BROKEN)
async def test_errors_within_lines_are_reported(
    call: Open, fault: Fault, error: type[VendorError], position: str, outputs: int
):
    found = await outcome(call(key_of(fault=fault, position=position), need_viseme=True))

    assert isinstance(found.error, error)
    assert found.error.retryable is (error is not Garbled)
    assert len(found.audio) == 4_800 * outputs


async def test_errors_in_raw_audio_are_reported(call: Open):
    cut = await outcome(call(key_of(fault=Fault.CUT_MID_STREAM)))
    assert isinstance(cut.error, VendorError)
    assert len(cut.audio) == 4_800

    for fault in (Fault.ERROR_INSIDE_200, Fault.WRONG_CONTENT_TYPE):
        found = await outcome(call(key_of(fault=fault, position="before")))
        assert isinstance(found.error, Garbled)
        assert found.items == []


@pytest.mark.parametrize("need_viseme", [False, True])
async def test_invalid_empty_and_slow_answers_are_distinguished(call: Open, *, need_viseme: bool):
    empty = await outcome(call(key_of(fault=Fault.EMPTY_ANSWER), need_viseme=need_viseme))
    assert (empty.audio, empty.error, empty.kinds(Visemes)) == (b"", None, [])

    slow = await outcome(call(key_of(fault=Fault.SLOW_DRIP, pace_ms=1), need_viseme=need_viseme))
    assert slow.audio == speech(TEXT, 24_000)

    assert isinstance((await outcome(call("", need_viseme=need_viseme))).error, Refused)


@pytest.mark.parametrize(
    ("fault", "need_viseme"),
    paired([Fault.HANG_BEFORE_HEADERS, Fault.HANG_BEFORE_OUTPUT, Fault.STALL_MID_STREAM], [False, True]),
)
async def test_leaving_a_waiting_call_closes_it(call: Open, sandbox: Running, fault: Fault, *, need_viseme: bool):
    outputs = int(fault is Fault.STALL_MID_STREAM)

    def timed(key: str):
        return call(key, need_viseme=need_viseme)

    found, entry = await left_while_waiting(sandbox, timed, fault, outputs=outputs)

    assert (len(found.audio), found.error) == (4_800 * outputs, None)
    assert entry.how == "closed_by_client"


@pytest.mark.parametrize(
    ("spec", "reported"),
    [
        ({"voice": "nobody"}, "voice_id nobody was not found"),
        ({"model": "eleven_v9"}, "eleven_v9 does not exist"),
        ({"options": {"output_format": "pcm_11025"}}, "enumeration"),
        ({"model": "eleven_multilingual_v2", "options": {"extra": {"language_code": "de"}}}, "language_code"),
        ({"model": "eleven_v3", "options": {"extra": {"language_code": "iw"}}}, "language 'iw'"),
        ({"options": {"extra": {"voice_settings": {"speed": 4}}}}, "speed"),
    ],
)
async def test_the_sandbox_refuses_what_the_vendor_refuses(call: Open, spec: dict[str, Any], reported: str):
    found = await outcome(call("k1", **spec))

    assert isinstance(found.error, Refused)
    assert reported in str(found.error)


async def test_text_that_is_too_long_is_refused(call: Open):
    found = await outcome(call("k1", "a" * 10_001, model="eleven_multilingual_v2"))

    assert "A maximum of 10000 characters" in str(found.error)


@asynccontextmanager
async def sdk(sandbox: Running, key: str = "k1") -> AsyncIterator["AsyncElevenLabs"]:
    import httpx  # noqa: PLC0415 - slow to import, for each worker of the tests
    from elevenlabs import AsyncElevenLabs  # noqa: PLC0415

    async with httpx.AsyncClient(trust_env=False) as client:
        yield AsyncElevenLabs(base_url=f"{sandbox.url}/elevenlabs", api_key=key, httpx_client=client)


def requested() -> dict[str, Any]:
    from elevenlabs import VoiceSettings  # noqa: PLC0415

    return {
        "text": TEXT,
        "model_id": "eleven_flash_v2_5",
        "output_format": "pcm_24000",
        "voice_settings": VoiceSettings(speed=1.2),
    }


@SDK
async def test_the_sdk_of_the_vendor_recognizes_the_same_text(call: Open, sandbox: Running):
    ours: Outcome = await outcome(call("k1", speed=1.2))

    async with sdk(sandbox) as client:
        speaking = client.text_to_speech
        streamed = b"".join([piece async for piece in speaking.stream(VOICE, **requested())])
        whole = b"".join([piece async for piece in speaking.convert(VOICE, **requested())])

    assert streamed == whole == ours.audio
    first, second, third = calls(sandbox)
    assert first.asked == second.asked == third.asked
    assert first.billed == second.billed == third.billed


@SDK
async def test_the_sdk_of_the_vendor_gets_the_same_times(call: Open, sandbox: Running):
    ours: Outcome = await outcome(call("k1", speed=1.2, need_viseme=True))

    async with sdk(sandbox) as client:
        speaking = client.text_to_speech
        lines = [line async for line in speaking.stream_with_timestamps(VOICE, **requested())]
        whole = await speaking.convert_with_timestamps(VOICE, **requested())
        thrice = requested() | {"text": " ".join([TEXT] * 3)}
        longer = [line async for line in speaking.stream_with_timestamps(VOICE, **thrice)]

    assert b"".join(b64decode(line.audio_base_64) for line in lines) == ours.audio
    assert b64decode(whole.audio_base_64) == ours.audio
    assert whole.alignment is not None
    reported = [letter for line in lines if line.alignment for letter in line.alignment.characters]
    assert "".join(reported) == "".join(whole.alignment.characters) == TEXT
    end = 0
    for line in longer:
        begin, end = end, end + len(b64decode(line.audio_base_64))
        begins_s = line.alignment.character_start_times_seconds if line.alignment else []
        assert all(begin <= round(at_s * 48_000) < end for at_s in begins_s)


@SDK
async def test_the_sdk_of_the_vendor_understands_its_errors(sandbox: Running):
    from elevenlabs.core import ApiError  # noqa: PLC0415

    for fault, status in ((Fault.OUT_OF_QUOTA, 401), (Fault.UNAVAILABLE, 429)):
        async with sdk(sandbox, key_of(fault=fault)) as client:
            with pytest.raises(ApiError) as error:
                await client.text_to_speech.convert_with_timestamps(
                    VOICE, request_options={"max_retries": 0}, **requested()
                )
        assert error.value.status_code == status
    async with sdk(sandbox) as client:
        voices = await client.voices.get_all()
        models = await client.models.list()

    assert voices.voices[0].voice_id == VOICE
    assert "eleven_v3" in [model.model_id for model in models]
