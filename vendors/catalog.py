"""The vendor platforms: what each requires of an account, and its clients by capability.

A new vendor needs a file and an entry in `CATALOG`. A new capability needs a name above it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
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
from vendors.hosts.midjourney import MidjourneyHost
from vendors.hosts.replicate import ReplicateHost
from vendors.http.transport import VendorHttp
from vendors.protocols import Assessor, ChatModel, Recognizer, Synthesizer
from vendors.speech.azure.assess import AzureAssessment
from vendors.speech.azure.stt import AzureRecognition
from vendors.speech.azure.tts import AzureSpeech
from vendors.speech.elevenlabs import ElevenLabsSpeech
from vendors.speech.google_stt import GoogleRecognition
from vendors.speech.google_tts import GoogleSpeech
from vendors.speech.local import LocalSpeech, LocalTranscription
from vendors.speech.local_assess import LocalAssessment
from vendors.speech.openai import OpenAITranscription
from vendors.speech.openai_speech import OpenAISpeech

Spec = TypeVar("Spec")
Client = TypeVar("Client")


class NoOptions(Model):
    """The platform has no options."""


@dataclass(frozen=True)  # Without slots, because `Capability[...](...)` sets an attribute.
class Capability(Generic[Spec, Client]):
    """An ability of clients of type `Client`, with the settings `Spec`. Platforms of `CATALOG` offer it."""

    name: str

    def by(
        self,
        client: Callable[[VendorHttp, Account, Spec], Client],
        options: type[Model] = NoOptions,
        check: Callable[[Any, Spec], None] | None = None,
    ) -> "Vendor[Spec, Client]":
        """Return how a platform provides it."""
        return Vendor(self, client, options, check)

    @cached_property
    def vendors(self) -> Mapping[str, "Vendor[Spec, Client]"]:
        """The vendors of this capability, by platform id."""
        return {
            platform: vendor
            for platform, entry in CATALOG.items()
            for vendor in entry.offers
            if vendor.capability is self
        }


@dataclass(frozen=True, slots=True)
class Vendor(Generic[Spec, Client]):
    """How a platform provides one capability."""

    capability: Capability[Spec, Client]
    client: Callable[[VendorHttp, Account, Spec], Client]
    """Creates a client. Raises `InvalidParameter` that names the invalid option."""
    options: type[Model]
    """Model of the `options` of a strategy."""
    check: Callable[[Any, Spec], None] | None
    """Raises `InvalidParameter` if valid options do not fit the other settings of a strategy."""


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
    offers: tuple[Vendor[Any, Any], ...] = ()


CHAT_MODELS = Capability[ChatSpec, ChatModel]("chat")
RECOGNIZERS = Capability[RecognitionSpec, Recognizer]("recognition")
SYNTHESIZERS = Capability[SpeechSpec, Synthesizer]("speech")
ASSESSORS = Capability[AssessmentSpec, Assessor]("assessment")
MODEL_HOSTS = Capability[None, ReplicateHost]("predictions")
IMAGE_HOSTS = Capability[None, MidjourneyHost]("images")

CATALOG: dict[str, Platform] = {
    "vendor_a_audio": Platform(
        aliases=("azure",),
        account=AddressedAccount,
        offers=(
            RECOGNIZERS.by(AzureRecognition, AzureRecognition.Options),
            SYNTHESIZERS.by(AzureSpeech, AzureSpeech.Options),
            ASSESSORS.by(AzureAssessment, AzureAssessment.Options),
        ),
    ),
    "vendor_b_audio": Platform(
        aliases=("openai_audio",),
        base_url="https://api.openai.com/v1",
        offers=(
            RECOGNIZERS.by(OpenAITranscription, OpenAITranscription.Options),
            SYNTHESIZERS.by(OpenAISpeech, OpenAISpeech.Options),
        ),
    ),
    "vendor_b_llm": Platform(
        aliases=("openai",),
        base_url="https://api.openai.com/v1",
        offers=(CHAT_MODELS.by(OpenAIChat, OpenAIChat.Options), SYNTHESIZERS.by(OpenAIAudio, OpenAIAudio.Options)),
    ),
    "vendor_c": Platform(
        aliases=("elevenlabs",),
        base_url="https://api.elevenlabs.io",
        offers=(SYNTHESIZERS.by(ElevenLabsSpeech, ElevenLabsSpeech.Options, ElevenLabsSpeech.check),),
    ),
    "vendor_d_audio": Platform(
        aliases=("google",),
        base_url="https://{service}.googleapis.com",
        account=GoogleAccount,
        offers=(
            RECOGNIZERS.by(GoogleRecognition, GoogleRecognition.Options),
            SYNTHESIZERS.by(GoogleSpeech, GoogleSpeech.Options),
        ),
    ),
    "anthropic": Platform(
        base_url="https://api.anthropic.com",
        offers=(CHAT_MODELS.by(AnthropicChat, AnthropicChat.Options, AnthropicChat.check),),
    ),
    "gemini": Platform(
        base_url="https://generativelanguage.googleapis.com/v1beta",
        account=GoogleAccount,
        offers=(CHAT_MODELS.by(GeminiChat, GeminiChat.Options),),
    ),
    "model_host": Platform(
        aliases=("replicate",),
        base_url="https://api.replicate.com/v1",
        offers=(MODEL_HOSTS.by(ReplicateHost),),
    ),
    "image_host": Platform(
        aliases=("midjourney",),
        base_url="https://api.piapi.ai",
        offers=(IMAGE_HOSTS.by(MidjourneyHost),),
    ),
    "local_llm": Platform(local=True, offers=(CHAT_MODELS.by(OpenAIChat, OpenAIChat.Options),)),
    "scripted": Platform(local=True, offers=(CHAT_MODELS.by(OpenAIChat, OpenAIChat.Options),)),
    "local_audio": Platform(
        local=True,
        offers=(
            RECOGNIZERS.by(LocalTranscription, LocalTranscription.Options),
            SYNTHESIZERS.by(LocalSpeech, LocalSpeech.Options),
            ASSESSORS.by(LocalAssessment),
        ),
    ),
    "local_models": Platform(local=True, offers=(MODEL_HOSTS.by(ReplicateHost),)),
    "local_images": Platform(local=True, offers=(IMAGE_HOSTS.by(MidjourneyHost),)),
}

CAPABILITIES: tuple[Capability[Any, Any], ...] = tuple(
    dict.fromkeys(vendor.capability for entry in CATALOG.values() for vendor in entry.offers)
)

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
