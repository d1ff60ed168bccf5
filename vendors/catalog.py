"""The vendor platforms and their client classes. A new vendor needs a file and an entry here."""

from dataclasses import dataclass
from typing import Any

from vendors.account import Account, AssessmentSpec, ChatSpec, RecognitionSpec, SpeechSpec
from vendors.chat.anthropic import AnthropicChat
from vendors.chat.gemini import GeminiChat
from vendors.chat.openai import OpenAIChat
from vendors.chat.openai_audio import OpenAIAudio
from vendors.protocols import Assessor, ChatModel, Recognizer, Synthesizer
from vendors.speech.azure_assess import AzureAssessment
from vendors.speech.azure_stt import AzureRecognition
from vendors.speech.azure_tts import AzureSpeech
from vendors.speech.elevenlabs import ElevenLabsSpeech
from vendors.speech.google_stt import GoogleRecognition
from vendors.speech.google_tts import GoogleSpeech
from vendors.speech.local import LocalSpeech
from vendors.speech.local_assess import LocalAssessment
from vendors.speech.openai import OpenAITranscription
from vendors.speech.openai_speech import OpenAISpeech
from vendors.transport import VendorHttp


@dataclass(frozen=True, slots=True)
class Platform:
    """The client classes of a platform, by capability.

    `base_url` is the public address; `local` platforms use the address of the local engines. The `Options` model
    of a client class describes the `options` of its strategies.
    """

    base_url: str | None = None
    local: bool = False
    chat: Any = None
    recognition: Any = None
    speech: Any = None
    assessment: Any = None


CATALOG: dict[str, Platform] = {
    "vendor_b_llm": Platform(base_url="https://api.openai.com/v1", chat=OpenAIChat, speech=OpenAIAudio),
    "vendor_b_audio": Platform(
        base_url="https://api.openai.com/v1", recognition=OpenAITranscription, speech=OpenAISpeech
    ),
    "anthropic": Platform(base_url="https://api.anthropic.com", chat=AnthropicChat),
    "gemini": Platform(base_url="https://generativelanguage.googleapis.com/v1beta", chat=GeminiChat),
    "vendor_a_audio": Platform(recognition=AzureRecognition, speech=AzureSpeech, assessment=AzureAssessment),
    "vendor_c": Platform(base_url="https://api.elevenlabs.io", speech=ElevenLabsSpeech),
    "vendor_d_audio": Platform(
        base_url="https://{service}.googleapis.com", recognition=GoogleRecognition, speech=GoogleSpeech
    ),
    "local_llm": Platform(local=True, chat=OpenAIChat),
    "scripted": Platform(local=True, chat=OpenAIChat),
    "local_audio": Platform(
        local=True, recognition=OpenAITranscription, speech=LocalSpeech, assessment=LocalAssessment
    ),
}

SPEECH_PLATFORMS = (
    "vendor_a_audio",
    "vendor_b_audio",
    "vendor_b_llm",
    "vendor_c",
    "vendor_d_audio",
    "local_audio",
)
"""The keys allowed in `platform_params` (§4.19)."""


def chat_model(http: VendorHttp, account: Account, spec: ChatSpec) -> ChatModel:
    client: ChatModel = CATALOG[account.platform].chat(http, account, spec)
    return client


def recognizer(http: VendorHttp, account: Account, spec: RecognitionSpec) -> Recognizer:
    client: Recognizer = CATALOG[account.platform].recognition(http, account, spec)
    return client


def synthesizer(http: VendorHttp, account: Account, spec: SpeechSpec) -> Synthesizer:
    client: Synthesizer = CATALOG[account.platform].speech(http, account, spec)
    return client


def assessor(http: VendorHttp, account: Account, spec: AssessmentSpec) -> Assessor:
    client: Assessor = CATALOG[account.platform].assessment(http, account, spec)
    return client
