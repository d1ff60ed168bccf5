"""Resolve strategy names into vendor clients, according to the configs of the app."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from actors.clients.vendor_clients import VendorAccess, VendorClients
from storage.configs.kinds.apps import APPS
from storage.configs.kinds.base import ConfigKind, ConfigModel
from storage.configs.kinds.conversation import CONVERSATION, Conversation
from storage.configs.kinds.pronunciation import PRONUNCIATION
from storage.configs.kinds.recognition import RECOGNITION, Recognition
from storage.configs.kinds.speech import SPEECH, Speech
from storage.configs.kinds.strategies import VendorCall
from storage.configs.kinds.vendor_accounts import VENDOR_ACCOUNTS, VendorAccount
from storage.configs.store import Active, ConfigStore
from storage.errors import ConfigNotFound
from streams.kept_errors import copy_of
from streams.languages import listed_languages
from streams.wire.codec import dumps
from streams.wire.errors import ConfigInvalid, InvalidParameter, ItemNotFound, ServiceError, listed
from streams.wire.ids import sha256_hex
from vendors.account import AssessmentSpec, ChatSpec, RecognitionSpec, SpeechSpec
from vendors.calls.gate import Gate, Hedge
from vendors.calls.meter import UnitPrice
from vendors.catalog import ASSESSORS, CHAT_MODELS, RECOGNIZERS, SYNTHESIZERS, Client, Spec
from vendors.protocols import Assessor, ChatModel, Recognizer, Synthesizer
from vendors.speech.languages import LanguageNotOffered


class StrategyNotFound(ItemNotFound):
    """The app has no strategy of the kind and the names in the request."""

    def __init__(self, kind: str, names: Sequence[str]) -> None:
        missing = "strategy {} does not exist" if len(names) == 1 else "strategies {} do not exist"
        super().__init__(f"{kind} {missing.format(listed(names))}")


def required_strategy(configs: ConfigStore, kind: ConfigKind[ConfigModel], app_id: str, name: str) -> ConfigModel:
    """Return the config of a strategy that a request names.

    Raises `StrategyNotFound`, or `ConfigInvalid` if it cannot be used.
    """
    try:
        return configs.get(kind, app_id, name).value
    except ConfigNotFound:
        raise StrategyNotFound(kind.name, [name]) from None


@dataclass(frozen=True, slots=True)
class Strategy:
    """A conversation strategy that is ready for use: its config and the client of its language model."""

    name: str
    config: Conversation
    platform: str
    model: ChatModel
    gate: Gate
    hedge: Hedge | None
    price: UnitPrice


@dataclass(frozen=True, slots=True)
class RecognitionStrategy:
    """A recognition strategy that is ready for use."""

    config: Recognition
    platform: str
    recognizer: Recognizer
    gate: Gate


@dataclass(frozen=True, slots=True)
class Voice:
    """A speech strategy that is ready for use."""

    config: Speech
    platform: str
    synthesizer: Synthesizer
    need_viseme: bool
    gate: Gate
    cache_digest: str | None = None
    """A digest of everything that affects the sound; `None` if the strategy does not cache its speech."""


@dataclass(frozen=True, slots=True)
class AssessmentAccount:
    """One account of a pronunciation strategy, ready for use."""

    config: VendorCall
    platform: str
    assessor: Assessor
    gate: Gate


@dataclass(frozen=True, slots=True)
class Broken:
    """A strategy that does not exist or whose config is invalid. It becomes a failed attempt with this error."""

    name: str
    fault: ServiceError


@dataclass(frozen=True, slots=True)
class SpeechOverrides:
    """Settings in a request that override those of the speech strategy."""

    voice: str | None = None
    prompt: str | None = None
    speed: float | None = None
    language_code: str | None = None
    need_viseme: bool | None = None


NO_OVERRIDES = SpeechOverrides()


class Strategies:
    """Resolves strategies by name. Conversation strategies are cached until a config changes."""

    def __init__(self, configs: ConfigStore, vendors: VendorClients) -> None:
        self._configs = configs
        self._vendors = vendors
        self._cache: dict[tuple[str, str], Strategy | Broken] = {}
        self._cache_version: tuple[object, ...] = ()

    def conversations(self, app_id: str, names: Sequence[str]) -> list[Strategy | Broken]:
        """Return the named strategies in the order in which they are to be tried.

        Raises `StrategyNotFound` if none exists, and `ConfigInvalid` if all that exist are broken.
        """
        if self._cache_version != self._vendors.version:
            self._cache.clear()
            self._cache_version = self._vendors.version
        self._check_names(CONVERSATION.name, names, lambda name: self._configs.exists(CONVERSATION, app_id, name))
        strategies = [self._conversation(app_id, name) for name in self._in_order(app_id, names)]
        _check_any_usable(strategies)
        return strategies

    def recognition(
        self, app_id: str, strategy: Strategy, *, language_code: str, prompt: str | None
    ) -> RecognitionStrategy:
        """Return the recognizer of a conversation strategy.

        Raises `ConfigInvalid` if it has no usable one, and `InvalidParameter` if it does not support the language.
        """
        name = strategy.config.recognition
        if name is None:
            raise ConfigInvalid(f"conversation {strategy.name}: recognition is not set")
        config = self._configs.required(RECOGNITION, app_id, name).value
        _check_language(config.languages, "language_code", language_code)
        spec = RecognitionSpec(
            model=config.model,
            options=config.options,
            connect_s=config.waits.connect_s,
            language_code=language_code,
            prompt=prompt or config.prompt,
        )
        access = self._vendors.account(RECOGNIZERS, app_id, config.account, model=config.model)
        client = _client(f"recognition {name}", access, spec, "language_code")
        return RecognitionStrategy(config, access.platform, client, access.gate)

    def voice(
        self, app_id: str, name: str, overrides: Mapping[str, SpeechOverrides], *, language: str | None
    ) -> Voice:
        """Return the voice of a speech strategy. `overrides` are settings from the request, by platform id.

        Raises `ConfigInvalid` if the config is unusable, and `InvalidParameter` if it lacks the language.
        """
        active = self._configs.required(SPEECH, app_id, name)
        voice, spec = self._voice(app_id, name, active.value, overrides, language=language)
        if not active.value.cache:
            return voice
        return replace(voice, cache_digest=self._cache_digest(app_id, name, active, spec))

    def draft_voice(self, app_id: str, name: str, config: Speech) -> Voice:
        """Return the voice of `config`, which need not be stored, without a cache. Raises `ConfigInvalid`."""
        return self._voice(app_id, name, config, {}, language=None)[0]

    def _voice(
        self,
        app_id: str,
        name: str,
        config: Speech,
        overrides: Mapping[str, SpeechOverrides],
        *,
        language: str | None,
    ) -> tuple[Voice, SpeechSpec]:
        access = self._vendors.account(SYNTHESIZERS, app_id, config.account, model=config.model)
        override = overrides.get(access.platform, NO_OVERRIDES)
        language_code = override.language_code or config.language_code or language
        field = "target_language_code" if override.language_code is None else "language_code"
        if language_code is not None:
            _check_language(config.languages, field, language_code)
        spec = SpeechSpec(
            model=config.model,
            options=config.options,
            connect_s=config.waits.connect_s,
            voice=override.voice or config.voice,
            speed=config.speed if override.speed is None else override.speed,
            prompt=config.prompt if override.prompt is None else override.prompt,
            language_code=language_code,
            audio_format=config.audio_format,
            need_viseme=config.need_viseme if override.need_viseme is None else override.need_viseme,
        )
        client = _client(f"speech {name}", access, spec, field)
        return Voice(config, access.platform, client, spec.need_viseme, access.gate), spec

    def _cache_digest(self, app_id: str, name: str, active: Active[Speech], spec: SpeechSpec) -> str:
        """Return a digest that differs after every change of the strategy or its account, and between overrides."""
        account = self._configs.get(VENDOR_ACCOUNTS, app_id, active.value.account)
        return sha256_hex(dumps([name, active.revision, active.value.account, account.revision, spec]))

    def voices(
        self, app_id: str, names: Sequence[str], overrides: Mapping[str, SpeechOverrides]
    ) -> list[tuple[str, Voice | Broken]]:
        """Return the named speech strategies like `conversations`, with the same errors."""
        self._check_names(SPEECH.name, names, lambda name: self._configs.exists(SPEECH, app_id, name))
        voices: list[tuple[str, Voice | Broken]] = []
        for name in self._in_order(app_id, names):
            try:
                voices.append((name, self.voice(app_id, name, overrides, language=None)))
            except ServiceError as error:
                voices.append((name, Broken(name, error)))
        _check_any_usable([voice for _, voice in voices])
        return voices

    def assessors(self, app_id: str, name: str, *, language: str) -> list[tuple[str, AssessmentAccount | Broken]]:
        """Return the accounts of a pronunciation strategy in order, with their names.

        Raises `StrategyNotFound` if the strategy does not exist, `ConfigInvalid` if all accounts are broken, and
        `InvalidParameter` if the strategy does not support the language.
        """
        if not self._configs.exists(PRONUNCIATION, app_id, name):
            raise StrategyNotFound(PRONUNCIATION.name, [name])
        config = self._configs.get(PRONUNCIATION, app_id, name).value
        _check_language(config.languages, "language", language)
        assessment_accounts: list[tuple[str, AssessmentAccount | Broken]] = []
        for call in config.accounts:
            try:
                assessment_accounts.append((call.account, self._assessment_account(app_id, name, call)))
            except ServiceError as error:
                assessment_accounts.append((call.account, Broken(call.account, error)))
        _check_any_usable([assessment_account for _, assessment_account in assessment_accounts])
        return assessment_accounts

    def _assessment_account(self, app_id: str, name: str, call: VendorCall) -> AssessmentAccount:
        access = self._vendors.account(ASSESSORS, app_id, call.account, model=call.model)
        spec = AssessmentSpec(model=call.model, options=call.options, connect_s=call.waits.connect_s)
        return AssessmentAccount(call, access.platform, _client(f"pronunciation {name}", access, spec), access.gate)

    def _conversation(self, app_id: str, name: str) -> Strategy | Broken:
        key = (app_id, name)
        if key not in self._cache:
            try:
                config = self._configs.get(CONVERSATION, app_id, name).value
                self._cache[key] = self.draft_conversation(app_id, name, config)
            except ServiceError as error:
                if isinstance(error, ItemNotFound):
                    return Broken(name, error)  # Not cached, because clients can send any number of names.
                self._cache[key] = Broken(name, error)
        return self._cache[key]

    def draft_account(self, name: str, account: VendorAccount, model: str) -> Strategy:
        """Return a strategy that calls a model of `account`, which need not be stored. Raises `ConfigInvalid`."""
        config = Conversation.model_validate({"chat": {"account": name, "model": model}})
        return _strategy(name, config, self._vendors.draft(CHAT_MODELS, name, account, model=model))

    def draft_conversation(self, app_id: str, name: str, config: Conversation) -> Strategy:
        """Return the conversation strategy of `config`, which need not be stored. Raises `ConfigInvalid`."""
        chat = config.chat
        return _strategy(name, config, self._vendors.account(CHAT_MODELS, app_id, chat.account, model=chat.model))

    def _in_order(self, app_id: str, names: Sequence[str]) -> Sequence[str]:
        """Return the names in a request in the order of the app, if it has one. Others follow as requested."""
        try:
            order = self._configs.singleton(APPS, app_id).strategy_order
        except ConfigInvalid:  # Conversations need nothing else of the config.
            return names
        if not order:
            return names
        ranks = {name: rank for rank, name in enumerate(order)}
        return sorted(names, key=lambda name: ranks.get(name, len(ranks)))

    @staticmethod
    def _check_names(kind: str, names: Sequence[str], exists: Callable[[str], bool]) -> None:
        if not any(map(exists, names)):
            raise StrategyNotFound(kind, names)


def _strategy(name: str, config: Conversation, access: VendorAccess[ChatSpec, ChatModel]) -> Strategy:
    chat = config.chat
    spec = ChatSpec(
        model=chat.model,
        options=chat.options,
        connect_s=chat.waits.connect_s,
        max_tokens=chat.max_tokens,
        temperature=chat.temperature,
    )
    model = _client(f"conversation {name}: chat", access, spec)
    return Strategy(name, config, access.platform, model, access.gate, hedge_of(chat), price_of(chat))


def _client(label: str, access: VendorAccess[Spec, Client], spec: Spec, language_field: str = "") -> Client:
    """Return a client. Raises `InvalidParameter` if the vendor lacks the language in the field `language_field`."""
    try:
        return access.client(spec)
    except LanguageNotOffered as error:
        raise InvalidParameter(f"{language_field} {error}") from None
    except InvalidParameter as error:
        raise ConfigInvalid(f"{label}: options.{error.what}") from None


def _check_any_usable(strategies: Sequence[object]) -> None:
    """Raise the first `ConfigInvalid` if all existing `strategies` are broken because of their configs."""
    broken = [strategy for strategy in strategies if isinstance(strategy, Broken)]
    existing = [strategy for strategy in broken if not isinstance(strategy.fault, ItemNotFound)]
    by_config = [strategy for strategy in existing if isinstance(strategy.fault, ConfigInvalid)]
    if by_config and len(by_config) == len(existing) and len(broken) == len(strategies):
        raise copy_of(by_config[0].fault)  # The original is cached and may be raised again.


def _check_language(languages: Sequence[str] | None, field: str, language_code: str) -> None:
    if languages is None:
        return
    try:
        found = listed_languages(tuple(languages)).find(language_code)
    except ValueError as error:
        raise InvalidParameter(f"{field} {error}") from None
    if found is None:
        raise InvalidParameter(f"{field} {listed([language_code])} is not one of {', '.join(languages)}")


def price_of(call: VendorCall) -> UnitPrice:
    """Return the prices of a strategy."""
    return UnitPrice(call.price.input, call.price.output)


def hedge_of(call: VendorCall) -> Hedge | None:
    """Return the hedge delay of a strategy in seconds, or `"auto"`, or `None` for no hedging."""
    after = call.hedge_after_ms
    return after / 1000 if isinstance(after, int) else after
