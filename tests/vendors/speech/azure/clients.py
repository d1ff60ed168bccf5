"""Clients of vendor A for any address or the sandbox, and the results of their calls."""

from collections.abc import Iterable
from typing import Any

from pydantic import SecretStr

from tests.vendors.speech.azure.inputs import REFERENCE, SAID
from vendors.account import Account, AssessmentSpec, RecognitionSpec, SpeechSpec
from vendors.http.transport import VendorHttp
from vendors.protocols import (
    Assessment,
    AssessmentItem,
    AssessmentRequest,
    AudioBytes,
    AudioFormat,
    AudioInput,
    SpeechItem,
    Transcript,
    Viseme,
    Visemes,
)
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running
from vendors.speech.azure.assess import AzureAssessment
from vendors.speech.azure.stt import AzureRecognition
from vendors.speech.azure.tts import AzureSpeech

PCM = AudioFormat("audio/pcm", 16_000)
JENNY = "en-US-JennyNeural"


def voice(http: VendorHttp | None, url: str, *, key: str = "k1", **spec: Any) -> AzureSpeech:
    account = Account("main", "vendor_a_audio", url, SecretStr(key))
    return AzureSpeech(http, account, SpeechSpec("", **{"voice": JENNY, **spec}))  # type: ignore[arg-type]


def sandbox_voice(
    http: VendorHttp, sandbox: Running, *, spec: dict[str, Any] | None = None, **key_options: Any
) -> AzureSpeech:
    return voice(http, f"{sandbox.url}/azure", key=key_of(**key_options), **(spec or {}))


async def synthesize(client: AzureSpeech, text: str = SAID) -> list[SpeechItem]:
    async with client.speak(text) as items:
        return [item async for item in items]


def audio_of(items: Iterable[SpeechItem]) -> bytes:
    return b"".join(item.audio for item in items if isinstance(item, AudioBytes))


def shapes_of(items: Iterable[SpeechItem]) -> list[Viseme]:
    return [shape for item in items if isinstance(item, Visemes) for shape in item.visemes]


def recognizer(http: VendorHttp | None, url: str, *, key: str = "k1", **spec: Any) -> AzureRecognition:
    account = Account("main", "vendor_a_audio", url, SecretStr(key))
    return AzureRecognition(http, account, RecognitionSpec(**{"model": "", **spec}))  # type: ignore[arg-type]


def sandbox_recognizer(http: VendorHttp, sandbox: Running, **key_options: Any) -> AzureRecognition:
    return recognizer(http, f"{sandbox.url}/azure", key=key_of(**key_options))


async def transcribe(client: AzureRecognition, audio: AudioInput, kind: AudioFormat = PCM) -> list[Transcript]:
    async with client.transcribe(audio, kind) as transcripts:
        return [transcript async for transcript in transcripts]


def assessor(http: VendorHttp | None, url: str, *, key: str = "k1", **options: Any) -> AzureAssessment:
    account = Account("main", "vendor_a_pronunciation", url, SecretStr(key))
    return AzureAssessment(http, account, AssessmentSpec(options=options))  # type: ignore[arg-type]


def sandbox_assessor(http: VendorHttp, sandbox: Running, **key_options: Any) -> AzureAssessment:
    return assessor(http, f"{sandbox.url}/azure", key=key_of(**key_options))


def ask(reference: str = REFERENCE, **fields: Any) -> AssessmentRequest:
    return AssessmentRequest(reference, **fields)


async def items_of(client: AzureAssessment, audio: AudioInput, request: AssessmentRequest) -> list[AssessmentItem]:
    async with client.assess(audio, request) as items:
        return [item async for item in items]


async def assess(client: AzureAssessment, audio: AudioInput, request: AssessmentRequest) -> Assessment:
    """Return the result, which is the last item and the only `Assessment`."""
    *partial, result = await items_of(client, audio, request)
    assert all(isinstance(item, Transcript) and not item.final for item in partial)
    assert isinstance(result, Assessment)
    return result


def words(result: Assessment) -> list[tuple[str, str]]:
    found = result.raw["NBest"][0]["Words"]
    return [(word["Word"], word["PronunciationAssessment"]["ErrorType"]) for word in found]
