"""Resolve strategy names into vendor clients, according to the configs of the app."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from storage.configs import Active, ConfigStore
from storage.kinds.conversation import CONVERSATION, Conversation
from storage.kinds.pronunciation import PRONUNCIATION
from storage.kinds.recognition import RECOGNITION, Recognition
from storage.kinds.speech import SPEECH, Speech
from storage.kinds.strategies import VendorCall
from storage.kinds.vendor_accounts import VENDOR_ACCOUNTS
from streams.wire.codec import dumps
from streams.wire.errors import ConfigInvalid, InvalidParameter, ItemNotFound, ServiceError, listed
from streams.wire.ids import sha256_hex
from vendors.account import Account, AssessmentSpec, ChatSpec, RecognitionSpec, SpeechSpec
from vendors.breaker import BreakerPolicy
from vendors.catalog import CATALOG, assessor, chat_model, recognizer, synthesizer
from vendors.gate import Gate, GatePolicy, Hedge
from vendors.local_engines import LocalEngines
from vendors.meter import UnitPrice
from vendors.protocols import Assessor, ChatModel, Recognizer, Synthesizer
from vendors.transport import VendorHttp

Client = TypeVar("Client")
Built = TypeVar("Built")


class StrategyNotFound(ItemNotFound):
    """The app has no strategy of the kind and the names in the request."""

    def __init__(self, subject: str, kind: str, names: Sequence[str]) -> None:
        super().__init__(f"{subject} no {kind} strategy of this app: {listed(names)}")


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
class Grader:
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

    def __init__(
        self, configs: ConfigStore, http: VendorHttp, engines: LocalEngines, *, local_url: str | None
    ) -> None:
        self._configs = configs
        self._http = http
        self._engines = engines
        self._local_url = local_url
        self._gates: dict[tuple[str, str], Gate] = {}
        self._cache: dict[tuple[str, str], Strategy | Broken] = {}
        self._cache_version: tuple[object, ...] = ()

    def conversations(self, app_id: str, names: Sequence[str]) -> list[Strategy | Broken]:
        """Return the named strategies in order.

        Raises `StrategyNotFound` if none exists, and `ConfigInvalid` if all that exist are broken.
        """
        version = (self._configs.version, self._engines.missing)
        if self._cache_version != version:
            self._cache.clear()
            self._cache_version = version
        self._check_names(CONVERSATION.name, names, lambda name: self._configs.exists(CONVERSATION, app_id, name))
        strategies = [self._conversation(app_id, name) for name in names]
        _check_any_usable(strategies)
        return strategies

    def recognition(
        self, app_id: str, strategy: Strategy, *, language_code: str, prompt: str | None
    ) -> RecognitionStrategy:
        """Return the recogniser of a conversation strategy.

        Raises `ConfigInvalid` if it has no usable one, and `InvalidParameter` if it does not support the language.
        """
        name = strategy.config.recognition
        if name is None:
            raise ConfigInvalid(f"conversation {strategy.name}: recognition is not set")
        config = self._config(lambda: self._configs.get(RECOGNITION, app_id, name).value)
        _check_language(config.languages, "language_code", language_code)
        spec = RecognitionSpec(
            model=config.model,
            options=config.options,
            connect_s=config.waits.connect_s,
            language_code=language_code,
            prompt=prompt or config.prompt,
        )
        account = self._account(app_id, config, "recognition")
        client = _client(f"recognition {name}", recognizer, self._http, account, spec)
        return RecognitionStrategy(config, account.platform, client, self._gate(app_id, config.account))

    def voice(
        self, app_id: str, name: str, overrides: Mapping[str, SpeechOverrides], *, language: str | None
    ) -> Voice:
        """Return the voice of a speech strategy. `overrides` are settings from the request, by platform id.

        Raises `ConfigInvalid` if the config is unusable, and `InvalidParameter` if it lacks the language.
        """
        active = self._config(lambda: self._configs.get(SPEECH, app_id, name))
        config = active.value
        account = self._account(app_id, config, "speech")
        override = overrides.get(account.platform, NO_OVERRIDES)
        language_code = override.language_code or config.language_code or language
        if language_code is not None:
            field = "target_language_code" if override.language_code is None else "language_code"
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
        client = _client(f"speech {name}", synthesizer, self._http, account, spec)
        cache_digest = self._cache_digest(app_id, name, active, spec) if config.cache else None
        gate = self._gate(app_id, config.account)
        return Voice(config, account.platform, client, spec.need_viseme, gate, cache_digest)

    def _cache_digest(self, app_id: str, name: str, active: Active[Speech], spec: SpeechSpec) -> str:
        """Return a digest that differs after every change of the strategy or its account, and between overrides."""
        account = self._configs.get(VENDOR_ACCOUNTS, app_id, active.value.account)
        return sha256_hex(dumps([name, active.revision, active.value.account, account.revision, spec]))

    def voices(
        self, app_id: str, names: Sequence[str], overrides: Mapping[str, SpeechOverrides]
    ) -> list[tuple[str, Voice | Broken]]:
        """Return the named speech strategies in order. Raises the same errors as `conversations`."""
        self._check_names(SPEECH.name, names, lambda name: self._configs.exists(SPEECH, app_id, name))
        voices: list[tuple[str, Voice | Broken]] = []
        for name in names:
            try:
                voices.append((name, self.voice(app_id, name, overrides, language=None)))
            except ServiceError as error:
                voices.append((name, Broken(name, error)))
        _check_any_usable([voice for _, voice in voices])
        return voices

    def assessors(self, app_id: str, name: str, *, language: str) -> list[tuple[str, Grader | Broken]]:
        """Return the accounts of a pronunciation strategy in order, with their names.

        Raises `StrategyNotFound` if the strategy does not exist, `ConfigInvalid` if all accounts are broken, and
        `InvalidParameter` if the strategy does not support the language.
        """
        if not self._configs.exists(PRONUNCIATION, app_id, name):
            raise StrategyNotFound("strategy names", PRONUNCIATION.name, [name])
        config = self._configs.get(PRONUNCIATION, app_id, name).value
        _check_language(config.languages, "language", language)
        graders: list[tuple[str, Grader | Broken]] = []
        for call in config.accounts:
            try:
                graders.append((call.account, self._grader(app_id, name, call)))
            except ServiceError as error:
                graders.append((call.account, Broken(call.account, error)))
        _check_any_usable([grader for _, grader in graders])
        return graders

    def _grader(self, app_id: str, name: str, call: VendorCall) -> Grader:
        account = self._account(app_id, call, "assessment")
        spec = AssessmentSpec(model=call.model, options=call.options, connect_s=call.waits.connect_s)
        client = _client(f"pronunciation {name}", assessor, self._http, account, spec)
        return Grader(call, account.platform, client, self._gate(app_id, call.account))

    def _conversation(self, app_id: str, name: str) -> Strategy | Broken:
        key = (app_id, name)
        if key not in self._cache:
            try:
                self._cache[key] = self._make(app_id, name)
            except ServiceError as error:
                if isinstance(error, ItemNotFound):
                    return Broken(name, error)  # Not cached, because clients can send any number of names.
                self._cache[key] = Broken(name, error)
        return self._cache[key]

    def _make(self, app_id: str, name: str) -> Strategy:
        config = self._configs.get(CONVERSATION, app_id, name).value
        chat = config.chat
        spec = ChatSpec(
            model=chat.model,
            options=chat.options,
            connect_s=chat.waits.connect_s,
            max_tokens=chat.max_tokens,
            temperature=chat.temperature,
        )
        account = self._account(app_id, chat, "chat")
        model = _client(f"conversation {name}: chat", chat_model, self._http, account, spec)
        gate = self._gate(app_id, chat.account)
        return Strategy(name, config, account.platform, model, gate, hedge_of(chat), price_of(chat))

    def _gate(self, app_id: str, account: str) -> Gate:
        """Return the gate that all calls of an account share. A change of the account's limits makes a new gate."""
        config = self._configs.get(VENDOR_ACCOUNTS, app_id, account).value
        policy = GatePolicy(
            at_once=config.concurrency,
            waiting=config.waiting,
            breaker=BreakerPolicy(**config.breaker.model_dump()),
        )
        gate = self._gates.get((app_id, account))
        if gate is None or gate.policy != policy:
            gate = self._gates[app_id, account] = Gate(f"{app_id}/{account}", policy)
        gate.secret = config.api_key.get_secret_value() if config.api_key else ""
        return gate

    def _account(self, app_id: str, call: VendorCall, capability: str) -> Account:
        name = call.account
        config = self._config(lambda: self._configs.get(VENDOR_ACCOUNTS, app_id, name).value)
        platform = CATALOG.get(config.platform)
        if platform is None:
            raise ConfigInvalid(f"vendor_accounts {name}: platform {config.platform} is unknown")
        if getattr(platform, capability) is None:
            raise ConfigInvalid(f"vendor_accounts {name}: platform {config.platform} offers no {capability}")
        own_engines = platform.local and config.base_url is None
        if own_engines and (reason := self._engines.missing.get(call.model)):
            raise ConfigInvalid(f"vendor_accounts {name}: {call.model} is missing: {reason}")
        base_url = self._local_url if own_engines else config.base_url or platform.base_url
        if base_url is None:
            raise ConfigInvalid(f"vendor_accounts {name}: base_url is not set")
        return Account(name, config.platform, base_url.rstrip("/"), config.api_key, config.concurrency)

    @staticmethod
    def _config(read: Callable[[], Built]) -> Built:
        try:
            return read()
        except ItemNotFound as error:
            raise ConfigInvalid(error.what) from None

    @staticmethod
    def _check_names(kind: str, names: Sequence[str], exists: Callable[[str], bool]) -> None:
        if not any(map(exists, names)):
            raise StrategyNotFound("strategies name", kind, names)


def _client(
    config: str,
    make: Callable[[VendorHttp, Account, Any], Client],
    http: VendorHttp,
    account: Account,
    spec: Any,
) -> Client:
    try:
        return make(http, account, spec)
    except InvalidParameter as error:
        raise ConfigInvalid(f"{config}: options.{error.what}") from None


def _check_any_usable(strategies: Sequence[object]) -> None:
    """Raise the first `ConfigInvalid` if all existing `strategies` are broken because of their configs."""
    broken = [strategy for strategy in strategies if isinstance(strategy, Broken)]
    existing = [strategy for strategy in broken if not isinstance(strategy.fault, ItemNotFound)]
    by_config = [strategy for strategy in existing if isinstance(strategy.fault, ConfigInvalid)]
    if by_config and len(by_config) == len(existing) and len(broken) == len(strategies):
        # The error is cached and raised again: without this, its traceback would grow.
        raise by_config[0].fault.with_traceback(None)


def _check_language(languages: Sequence[str] | None, field: str, language_code: str) -> None:
    if languages is None:
        return
    code = language_code.lower()
    for language in languages:
        if code == language.lower() or code.startswith(f"{language.lower()}-"):
            return
    raise InvalidParameter(f"{field} {listed([language_code])} is not one of {', '.join(languages)}")


def price_of(call: VendorCall) -> UnitPrice:
    """Return the prices of a strategy as exact decimals."""
    return UnitPrice(Decimal(str(call.price.input)), Decimal(str(call.price.output)))


def hedge_of(call: VendorCall) -> Hedge | None:
    """Return the hedge delay of a strategy in seconds, or `"auto"`, or `None` for no hedging."""
    after = call.hedge_after_ms
    return after / 1000 if isinstance(after, int) else after
