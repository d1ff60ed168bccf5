"""The vendor platforms: what each requires of an account, and its clients by capability.

A new vendor needs a file and an entry in `CATALOG`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streams.wire.model import Model
from vendors.account import (
    Account,
    AddressedAccount,
    AssessmentSpec,
    ChatSpec,
    KeyAccount,
    RecognitionSpec,
    SpeechSpec,
)
from vendors.chat.anthropic import AnthropicChat
from vendors.chat.gemini import GeminiChat
from vendors.chat.openai import OpenAIChat
from vendors.chat.openai_audio import OpenAIAudio
from vendors.google import GoogleAccount
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

Spec = TypeVar("Spec")
Client = TypeVar("Client")


@dataclass(frozen=True)  # Without slots, because a call of `ChatVendor` sets an attribute.
class Vendor(Generic[Spec, Client]):
    """How a platform provides one capability."""

    client: Callable[[VendorHttp, Account, Spec], Client]
    """Creates a client. Raises `InvalidParameter` that names the invalid option."""
    options: type[Model]
    """Model of the `options` of a strategy."""
    check: Callable[[Any, Spec], None] | None = None
    """Raises `InvalidParameter` if valid options do not fit the other settings of a strategy."""


ChatVendor = Vendor[ChatSpec, ChatModel]
RecognitionVendor = Vendor[RecognitionSpec, Recognizer]
SpeechVendor = Vendor[SpeechSpec, Synthesizer]
AssessmentVendor = Vendor[AssessmentSpec, Assessor]


@dataclass(frozen=True, slots=True)
class Platform:
    """A platform that vendor accounts may name.

    `aliases` are accepted in place of its id when a config is written. `base_url` is the public address; `local`
    platforms use the address of the local engines. `account` validates the fields of an account.
    """

    aliases: tuple[str, ...] = ()
    base_url: str | None = None
    local: bool = False
    account: type[Model] = KeyAccount
    chat: ChatVendor | None = None
    recognition: RecognitionVendor | None = None
    speech: SpeechVendor | None = None
    assessment: AssessmentVendor | None = None


CATALOG: dict[str, Platform] = {
    "vendor_a_audio": Platform(
        aliases=("azure",),
        account=AddressedAccount,
        recognition=RecognitionVendor(AzureRecognition, AzureRecognition.Options),
        speech=SpeechVendor(AzureSpeech, AzureSpeech.Options),
        assessment=AssessmentVendor(AzureAssessment, AzureAssessment.Options),
    ),
    "vendor_b_audio": Platform(
        aliases=("openai_audio",),
        base_url="https://api.openai.com/v1",
        recognition=RecognitionVendor(OpenAITranscription, OpenAITranscription.Options),
        speech=SpeechVendor(OpenAISpeech, OpenAISpeech.Options),
    ),
    "vendor_b_llm": Platform(
        aliases=("openai",),
        base_url="https://api.openai.com/v1",
        chat=ChatVendor(OpenAIChat, OpenAIChat.Options),
        speech=SpeechVendor(OpenAIAudio, OpenAIAudio.Options),
    ),
    "vendor_c": Platform(
        aliases=("elevenlabs",),
        base_url="https://api.elevenlabs.io",
        speech=SpeechVendor(ElevenLabsSpeech, ElevenLabsSpeech.Options, ElevenLabsSpeech.check),
    ),
    "vendor_d_audio": Platform(
        aliases=("google",),
        base_url="https://{service}.googleapis.com",
        account=GoogleAccount,
        recognition=RecognitionVendor(GoogleRecognition, GoogleRecognition.Options),
        speech=SpeechVendor(GoogleSpeech, GoogleSpeech.Options),
    ),
    "anthropic": Platform(
        base_url="https://api.anthropic.com",
        chat=ChatVendor(AnthropicChat, AnthropicChat.Options, AnthropicChat.check),
    ),
    "gemini": Platform(
        base_url="https://generativelanguage.googleapis.com/v1beta",
        account=GoogleAccount,
        chat=ChatVendor(GeminiChat, GeminiChat.Options),
    ),
    "local_llm": Platform(local=True, chat=ChatVendor(OpenAIChat, OpenAIChat.Options)),
    "scripted": Platform(local=True, chat=ChatVendor(OpenAIChat, OpenAIChat.Options)),
    "local_audio": Platform(
        local=True,
        recognition=RecognitionVendor(OpenAITranscription, OpenAITranscription.Options),
        speech=SpeechVendor(LocalSpeech, LocalSpeech.Options),
        assessment=AssessmentVendor(LocalAssessment, LocalAssessment.Options),
    ),
}


@dataclass(frozen=True, slots=True)
class Capability(Generic[Spec, Client]):
    """A capability and the platforms that provide it, by id."""

    name: str
    vendors: Mapping[str, Vendor[Spec, Client]]


CHAT_MODELS = Capability("chat", {name: entry.chat for name, entry in CATALOG.items() if entry.chat})
RECOGNIZERS = Capability(
    "recognition", {name: entry.recognition for name, entry in CATALOG.items() if entry.recognition}
)
SYNTHESIZERS = Capability("speech", {name: entry.speech for name, entry in CATALOG.items() if entry.speech})
ASSESSORS = Capability(
    "assessment", {name: entry.assessment for name, entry in CATALOG.items() if entry.assessment}
)
CAPABILITIES: tuple[Capability[Any, Any], ...] = (CHAT_MODELS, RECOGNIZERS, SYNTHESIZERS, ASSESSORS)

PLATFORM_IDS: dict[str, str] = {
    name: platform for platform, entry in CATALOG.items() for name in (platform, *entry.aliases)
}
"""The ids of platforms by id and by alias."""


def platforms_with_aliases() -> list[str]:
    """Return the ids for a message, sorted, each followed by its aliases: `vendor_c (or elevenlabs)`."""
    return sorted(
        f"{platform} (or {', '.join(entry.aliases)})" if entry.aliases else platform
        for platform, entry in CATALOG.items()
    )
