"""The clients of Google's speech with the sandbox, by key and by service account."""

from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from pydantic import SecretStr

from streams.audio.audio import wav_header
from streams.audio.mp3 import mp3_duration_ms
from streams.input_buffer import InputBuffer
from streams.wire.codec import dumps
from tests.peers.rsa_keys import rsa_key
from tests.sampling import paired
from tests.vendors.sandbox_calls import Open, calls, left_while_waiting, outcome
from vendors.account import Account, RecognitionSpec, SpeechSpec
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.outgoing import Outgoing
from vendors.http.transport import VendorHttp
from vendors.protocols import AudioFormat, SpeechFormat, Transcript, Visemes
from vendors.sandbox.content import mp3, speech, speech_ms
from vendors.sandbox.faults import Fault, key_of
from vendors.sandbox.server import Running
from vendors.speech.google_stt import GoogleRecognition
from vendors.speech.google_tts import GoogleSpeech

TEXT = "Show me the harbour, please"
PCM = AudioFormat("audio/pcm", 16_000)
SAID = speech("Some words for you.", 16_000)
PEM = (
    rsa_key()
    .private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    .decode()
)


def account(sandbox: Running, key: str) -> Account:
    return Account("main", "vendor_d_audio", f"{sandbox.url}/google", SecretStr(key))


def service_account(sandbox: Running, key: str) -> str:
    """Return a service account whose access token is this sandbox key."""
    value = {
        "client_email": "speech@project.iam.gserviceaccount.com",
        "private_key_id": key,
        "private_key": PEM,
        "token_uri": f"{sandbox.url}/google/token",
    }
    return dumps(value).decode()


@pytest.fixture
def speak(http: VendorHttp, sandbox: Running) -> Open:
    def call(key: str, text: str = TEXT, **spec: object):
        fields = {"model": "", "voice": "en-US-Neural2-C", "audio_format": "wav", **spec}
        return GoogleSpeech(http, account(sandbox, key), SpeechSpec(**fields)).speak(text)

    return call


@pytest.fixture
def hear(http: VendorHttp, sandbox: Running) -> Open:
    def call(key: str, audio: bytes = SAID, kind: AudioFormat = PCM, **spec: object):
        buffer = InputBuffer()
        buffer.write(audio)
        buffer.end()
        fields = {"model": "latest_short", "language_code": "en-US", **spec}
        return GoogleRecognition(http, account(sandbox, key), RecognitionSpec(**fields)).transcribe(buffer, kind)

    return call


@pytest.fixture
def both(speak: Open, hear: Open) -> dict[str, Open]:
    return {"speak": speak, "hear": hear}


async def test_speech_is_complete_and_billed(speak: Open, sandbox: Running):
    found = await outcome(speak("k1", speed=4.0, language_code="en"))

    assert found.error is None
    assert found.items[0] == SpeechFormat("audio/wav", 24_000)
    assert found.audio == speech(TEXT, 24_000, speed=2.0)
    (entry,) = calls(sandbox)
    assert (entry.vendor, entry.stage, entry.how) == ("google", "tts", "done")
    assert entry.billed == {"characters": len(TEXT)}


async def test_mp3_of_a_long_text(speak: Open, sandbox: Running):
    text = "This is one of many sentences, each as long as any other. " * 40

    found = await outcome(speak("k1", text, audio_format="mp3"))

    assert found.error is None
    assert len(calls(sandbox)) == 3
    assert mp3_duration_ms(found.audio) == pytest.approx(speech_ms(text), rel=0.01)


async def test_shapes_arrive_with_the_words(speak: Open):
    found = await outcome(speak("k1", need_viseme=True))

    assert found.audio == speech(TEXT, 24_000)
    (visemes,) = found.kinds(Visemes)
    assert found.items.index(visemes) == 1
    offsets = [shape.offset_ms for shape in visemes.visemes]
    assert (visemes.visemes[0].viseme_id, visemes.visemes[-1].viseme_id) == (16, 0)
    assert offsets == sorted(set(offsets))
    begins = [round(TEXT.index(word) * speech_ms(TEXT) / len(TEXT)) for word in TEXT.split()]
    assert all(any(abs(offset - begin) <= 1 for offset in offsets) for begin in begins)


async def test_requests_for_newer_voices_have_no_marks(speak: Open):
    found = await outcome(speak("k1", need_viseme=True, voice="en-US-Chirp3-HD-Charon"))

    assert (found.error, found.kinds(Visemes)) == (None, [])
    assert found.audio == speech(TEXT, 24_000)


async def test_text_of_any_script_fits_the_limit_of_the_vendor(speak: Open):
    for text in ("没有空格的长句子" * 500, "&<>" * 1300, "a " * 2000, "x" * 4096):
        for need_viseme in (False, True):
            found = await outcome(speak("k1", text, need_viseme=need_viseme, voice="cmn-CN-Wavenet-A"))
            assert found.error is None
            assert len(found.audio) > 24_000 * len(text) / 15


@pytest.mark.parametrize(
    ("audio", "kind"),
    [
        (SAID, PCM),
        (wav_header(16_000, data_bytes=len(SAID)) + SAID, AudioFormat("audio/wav", 0)),
        (mp3(SAID, 16_000), AudioFormat("audio/mpeg", 0)),
        (b"OggS" + bytes(5_063), AudioFormat("audio/ogg", 0)),
    ],
)
async def test_recordings_are_recognized_and_billed(hear: Open, sandbox: Running, audio: bytes, kind: AudioFormat):
    found = await outcome(hear(key_of(text="How are you? I am well. And you"), audio, kind))

    assert found.items == [Transcript("How are you? I am well. And you", final=True, seconds=2)]
    (entry,) = calls(sandbox)
    assert (entry.stage, entry.how, entry.billed) == ("stt", "done", {"seconds": 2})


async def test_silence_is_recognized_as_no_words(hear: Open):
    assert (await outcome(hear("k1", bytes(32_000)))).items == [Transcript("", final=True, seconds=1)]


async def test_more_than_a_minute_is_billed_in_pieces(hear: Open, sandbox: Running):
    audio = (SAID * 80)[: 32_000 * 61]

    for sent, kind in (
        (audio, PCM),
        (wav_header(16_000, data_bytes=len(audio)) + audio, AudioFormat("audio/wav", 0)),
    ):
        found = await outcome(hear(key_of(text="One."), sent, kind))
        assert found.items == [Transcript("One. One.", final=True, seconds=62)]
    assert len(calls(sandbox)) == 4


@pytest.mark.parametrize(
    ("audio", "kind", "reported"),
    [
        (b"fLaC" + bytes(4_000 * 61), AudioFormat("audio/flac", 0), "Sync input too long"),
        (mp3(SAID * 50, 16_000), AudioFormat("audio/mpeg", 0), "does not accept more than 60 s of MP3"),
        (b"OggS" + bytes(5_063), AudioFormat("audio/flac", 0), "bad encoding"),
    ],
    ids=["flac", "mp3", "other type"],
)
async def test_other_audio_is_refused(hear: Open, audio: bytes, kind: AudioFormat, reported: str):
    found = await outcome(hear("k1", audio, kind))

    assert reported in str(found.error)
    assert isinstance(found.error, Refused)
    assert not found.error.retryable


async def test_a_service_account_can_synthesize_and_recognize(speak: Open, hear: Open, sandbox: Running):
    key = service_account(sandbox, key_of(text="Good day."))

    assert (await outcome(speak(key))).audio == speech(TEXT, 24_000)
    assert (await outcome(hear(key))).items == [Transcript("Good day.", final=True, seconds=2)]


async def test_token_that_is_always_refused_is_reported(speak: Open, sandbox: Running):
    found = await outcome(speak(service_account(sandbox, "wrong")))

    assert isinstance(found.error, Refused)
    assert found.error.vendor_status == 401


REFUSALS = {
    Fault.UNAUTHORIZED: (400, False),
    Fault.OUT_OF_QUOTA: (403, False),
    Fault.RATE_LIMITED: (429, True),
    Fault.SERVER_ERROR: (500, True),
    Fault.UNAVAILABLE: (503, True),
}


@pytest.mark.parametrize(("fault", "direction"), paired([*REFUSALS], ["speak", "hear"]))
async def test_refusals_are_reported_with_their_status(
    both: dict[str, Open], sandbox: Running, direction: str, fault: Fault
):
    call = both[direction]

    found = await outcome(call(key_of(fault=fault, retry_after_s=9)))

    assert found.items == []
    assert isinstance(found.error, Refused)
    assert (found.error.vendor_status, found.error.retryable) == REFUSALS[fault]
    asked_again = fault in {Fault.SERVER_ERROR, Fault.UNAVAILABLE}
    assert [entry.how for entry in calls(sandbox)] == ["fault"] * (2 if asked_again else 1)


@pytest.mark.parametrize("direction", ["speak", "hear"])
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.CUT_MID_STREAM, VendorError),
        (Fault.MALFORMED_FRAME, Garbled),
        (Fault.WRONG_CONTENT_TYPE, Garbled),
        (Fault.ERROR_INSIDE_200, Refused),
    ],
)
async def test_errors_in_the_answer_are_reported(
    both: dict[str, Open], direction: str, fault: Fault, error: type[VendorError]
):
    found = await outcome(both[direction](key_of(fault=fault)))

    assert isinstance(found.error, error)
    assert found.items == []


async def test_empty_and_slow_answers_are_no_errors(speak: Open, hear: Open):
    key = key_of(fault=Fault.EMPTY_ANSWER)

    assert (await outcome(speak(key))).items == [SpeechFormat("audio/wav", 24_000)]
    assert (await outcome(hear(key))).items == [Transcript("", final=True, seconds=2)]
    assert (await outcome(hear(key_of(fault=Fault.SLOW_DRIP, pace_ms=1, text="a")))).error is None


@pytest.mark.parametrize(
    ("fault", "direction"),
    paired([Fault.HANG_BEFORE_HEADERS, Fault.HANG_BEFORE_OUTPUT, Fault.STALL_MID_STREAM], ["speak", "hear"]),
)
async def test_leaving_a_waiting_call_closes_it(
    both: dict[str, Open], sandbox: Running, direction: str, fault: Fault
):
    found, entry = await left_while_waiting(sandbox, both[direction], fault, outputs=0)

    assert (found.items, found.error) == ([], None)
    assert entry.how == "closed_by_client"


INPUT = {"text": "Hi."}
NAMED = {"languageCode": "en-US", "name": "en-US-Neural2-C"}
MP3 = {"audioEncoding": "MP3"}


@pytest.mark.parametrize(
    ("requested", "reported"),
    [
        ({"voice": NAMED, "audioConfig": MP3}, "Invalid input oneof"),
        ({"input": INPUT | {"ssml": "<speak/>"}, "voice": NAMED, "audioConfig": MP3}, "Invalid input oneof"),
        ({"input": {"text": "a" * 5001}, "voice": NAMED, "audioConfig": MP3}, "limit of 5000 bytes"),
        ({"input": {"text": "a" * 2000}, "voice": NAMED, "audioConfig": MP3}, "sentences that are too long"),
        ({"input": {"ssml": "<speak>a &"}, "voice": NAMED, "audioConfig": MP3}, "Invalid SSML"),
        ({"input": INPUT, "audioConfig": MP3}, "voice.language_code"),
        ({"input": INPUT, "voice": NAMED | {"languageCode": "en"}, "audioConfig": MP3}, "doesn't match the voice"),
        ({"input": INPUT, "voice": {"languageCode": "cmn-Hans-CN"}, "audioConfig": MP3}, "not supported"),
        ({"input": INPUT, "voice": NAMED, "audioConfig": MP3 | {"speakingRate": 4}}, "speaking_rate"),
        ({"input": INPUT, "voice": NAMED, "audioConfig": MP3, "enableTimePointing": []}, "enableTimePointing"),
    ],
)
async def test_the_sandbox_refuses_what_the_vendor_refuses(
    http: VendorHttp, sandbox: Running, requested: dict[str, Any], reported: str
):
    url = f"{sandbox.url}/google/v1/text:synthesize"
    call = Outgoing("google", url, headers={"X-Goog-Api-Key": "k1"}, body=dumps(requested))

    with pytest.raises(Refused, match="answered 400") as fault:
        async with http.stream(call):
            pass
    assert reported in str(fault.value)


@pytest.mark.parametrize("form", [{}, {"assertion": "x"}, {"grant_type": "x", "assertion": "x"}])
async def test_sandbox_refuses_invalid_assertions(http: VendorHttp, sandbox: Running, form: dict[str, str]):
    body = "&".join(f"{name}={value}" for name, value in form.items()).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}

    with pytest.raises(Refused, match="invalid_grant"):
        async with http.stream(Outgoing("google", f"{sandbox.url}/google/token", headers=headers, body=body)):
            pass
