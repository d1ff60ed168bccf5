"""The strategies of an app and their capabilities, for pages on which people try the app."""

from actors.clients.strategies import Broken, Strategy
from app.http.rows.endpoint import Call
from app.playground import playground_shown
from app.services import Services
from storage.configs.kinds.apps import APPS
from storage.configs.kinds.conversation import CONVERSATION
from storage.configs.kinds.pronunciation import PRONUNCIATION
from storage.configs.kinds.recognition import RECOGNITION
from storage.configs.kinds.speech import SPEECH
from streams.wire.disclosure import told_message
from streams.wire.errors import NotFound, ServiceError
from streams.wire.model import Model

_ANY_LANGUAGE = "en"
"""For strategies that accept every language."""


class NoPlayground(NotFound):
    """The app has no playground."""

    def __init__(self) -> None:
        super().__init__("this app has no playground")


class Offer(Model):
    name: str
    fault: str | None = None
    """Why the strategy cannot be used as configured; absent if it can."""


class ConversationOffer(Offer):
    hears: bool
    """Whether it accepts audio input."""
    heard_languages: list[str] | None = None
    """Language codes of audio input (`en` includes every `en-…`); absent: any."""
    speaks: bool
    """Whether its answers include audio."""
    spoken_languages: list[str] | None = None
    """Language codes of speech; absent: any."""


class VoiceOffer(Offer):
    languages: list[str] | None = None
    """Language codes of speech; absent: any."""


class PronunciationOffer(Offer):
    languages: list[str] | None = None
    """Language codes that it assesses; absent: any."""


class Offers(Model):
    """The strategies that an app offers, by what they do."""

    title: str
    """Title of the app."""
    conversation: list[ConversationOffer]
    speech: list[VoiceOffer]
    pronunciation: list[PronunciationOffer]


async def offers(call: Call) -> Offers:
    """List the strategies of the app.

    The response has the names and capabilities of the strategies, so that a page can offer a choice. A client app
    may call this only if `playground` is on in the app's config `apps`; an app server may always call it.
    """
    services, app_id = call.services, call.app_id
    if call.caller.server_key is None and not playground_shown(services, app_id):
        raise NoPlayground
    configs = services.configs
    return Offers(
        title=configs.singleton(APPS, app_id).title,
        conversation=[_conversation(services, app_id, name) for name in configs.names(CONVERSATION, app_id)],
        speech=[_voice(services, app_id, name) for name in configs.names(SPEECH, app_id)],
        pronunciation=[_pronunciation(services, app_id, name) for name in configs.names(PRONUNCIATION, app_id)],
    )


def _conversation(services: Services, app_id: str, name: str) -> ConversationOffer:
    try:
        [strategy] = services.strategies.conversations(app_id, [name])
    except ServiceError as error:
        strategy = Broken(name, error)
    if isinstance(strategy, Broken):
        return ConversationOffer(name=name, fault=_told(services, strategy.fault), hears=False, speaks=False)
    hears, heard = _hearing(services, app_id, strategy)
    speaks, spoken = _speaking(services, app_id, strategy)
    return ConversationOffer(name=name, hears=hears, heard_languages=heard, speaks=speaks, spoken_languages=spoken)


def _hearing(services: Services, app_id: str, strategy: Strategy) -> tuple[bool, list[str] | None]:
    """Return whether a strategy accepts audio, and in which languages."""
    name = strategy.config.recognition
    if name is None:
        return False, None
    try:
        languages = services.configs.get(RECOGNITION, app_id, name).value.languages
        services.strategies.recognition(app_id, strategy, language_code=_example_language(languages), prompt=None)
    except ServiceError:
        return False, None
    return True, languages


def _speaking(services: Services, app_id: str, strategy: Strategy) -> tuple[bool, list[str] | None]:
    """Return whether the answers of a strategy include audio, and in which languages."""
    name = strategy.config.speech
    if name is None:
        return False, None
    offer = _voice(services, app_id, name)
    return offer.fault is None, offer.languages


def _voice(services: Services, app_id: str, name: str) -> VoiceOffer:
    try:
        languages = services.configs.get(SPEECH, app_id, name).value.languages
        services.strategies.voice(app_id, name, {}, language=None)
    except ServiceError as error:
        return VoiceOffer(name=name, fault=_told(services, error))
    return VoiceOffer(name=name, languages=languages)


def _pronunciation(services: Services, app_id: str, name: str) -> PronunciationOffer:
    try:
        languages = services.configs.get(PRONUNCIATION, app_id, name).value.languages
        services.strategies.assessors(app_id, name, language=_example_language(languages))
    except ServiceError as error:
        return PronunciationOffer(name=name, fault=_told(services, error))
    return PronunciationOffer(name=name, languages=languages)


def _told(services: Services, error: ServiceError) -> str:
    return told_message(error, in_full=services.settings.development)


def _example_language(languages: list[str] | None) -> str:
    return languages[0] if languages else _ANY_LANGUAGE
