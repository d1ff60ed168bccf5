"""Names of strategies become attempts: here configs meet vendor clients."""

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
from streams.wire.errors import ConfigInvalid, InvalidParameter, ItemNotFound, ServiceError
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


@dataclass(frozen=True, slots=True)
class Strategy:
    """A conversation strategy that can be asked: its config and its language model."""

    name: str
    config: Conversation
    platform: str
    model: ChatModel
    gate: Gate
    hedge: Hedge | None
    price: UnitPrice


@dataclass(frozen=True, slots=True)
class Ear:
    config: Recognition
    platform: str
    recognizer: Recognizer
    gate: Gate


@dataclass(frozen=True, slots=True)
class Voice:
    config: Speech
    platform: str
    synthesizer: Synthesizer
    need_viseme: bool
    gate: Gate
    stored_as: str | None = None
    """A digest of all that shapes its sound; none where what it says is not cached."""


@dataclass(frozen=True, slots=True)
class Grader:
    """One account of a pronunciation strategy."""

    config: VendorCall
    platform: str
    assessor: Assessor
    gate: Gate


@dataclass(frozen=True, slots=True)
class Broken:
    """A strategy that exists no more, or whose config cannot be used: a failed attempt with this reason."""

    name: str
    fault: ServiceError


@dataclass(frozen=True, slots=True)
class SpeechWish:
    """What a request asks of a voice, over the strategy's own settings."""

    voice: str | None = None
    prompt: str | None = None
    speed: float | None = None
    language_code: str | None = None
    need_viseme: bool | None = None


NO_WISH = SpeechWish()


class Strategies:
    """Looks strategies up by name. What can be made when a config changes is made once, not per stream."""

    def __init__(
        self, configs: ConfigStore, http: VendorHttp, engines: LocalEngines, *, local_url: str | None
    ) -> None:
        self._configs = configs
        self._http = http
        self._engines = engines
        self._local_url = local_url
        self._gates: dict[tuple[str, str], Gate] = {}
        self._made: dict[tuple[str, str], Strategy | Broken] = {}
        self._made_of: tuple[object, ...] = ()

    def conversations(self, app_id: str, names: Sequence[str]) -> list[Strategy | Broken]:
        """The named strategies in order. None exists: `ItemNotFound`. All that exist broken: `ConfigInvalid`."""
        made_of = (self._configs.version, self._engines.missing)
        if self._made_of != made_of:
            self._made.clear()
            self._made_of = made_of
        self._check_names(CONVERSATION.name, names, lambda name: self._configs.exists(CONVERSATION, app_id, name))
        found = [self._conversation(app_id, name) for name in names]
        _check_one_sound(found)
        return found

    def ear(self, app_id: str, strategy: Strategy, *, language_code: str, prompt: str | None) -> Ear:
        """The recogniser of a conversation strategy; a `ServiceError` where it has none that fits."""
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
        return Ear(config, account.platform, client, self._gate(app_id, config.account))

    def voice(self, app_id: str, name: str, wishes: Mapping[str, SpeechWish], *, language: str | None) -> Voice:
        """The voice of a speech strategy; `wishes` by platform id go over its settings."""
        active = self._config(lambda: self._configs.get(SPEECH, app_id, name))
        config = active.value
        account = self._account(app_id, config, "speech")
        wish = wishes.get(account.platform, NO_WISH)
        spoken = wish.language_code or config.language_code or language
        if spoken is not None:
            field = "target_language_code" if wish.language_code is None else "language_code"
            _check_language(config.languages, field, spoken)
        spec = SpeechSpec(
            model=config.model,
            options=config.options,
            connect_s=config.waits.connect_s,
            voice=wish.voice or config.voice,
            speed=config.speed if wish.speed is None else wish.speed,
            prompt=config.prompt if wish.prompt is None else wish.prompt,
            language_code=spoken,
            audio_format=config.audio_format,
            need_viseme=config.need_viseme if wish.need_viseme is None else wish.need_viseme,
        )
        client = _client(f"speech {name}", synthesizer, self._http, account, spec)
        stored_as = self._stored_as(app_id, name, active, spec) if config.cache else None
        gate = self._gate(app_id, config.account)
        return Voice(config, account.platform, client, spec.need_viseme, gate, stored_as)

    def _stored_as(self, app_id: str, name: str, active: Active[Speech], spec: SpeechSpec) -> str:
        """Another one after each change of the strategy or its account, and for other wishes."""
        account = self._configs.get(VENDOR_ACCOUNTS, app_id, active.value.account)
        return sha256_hex(dumps([name, active.revision, active.value.account, account.revision, spec]))

    def voices(
        self, app_id: str, names: Sequence[str], wishes: Mapping[str, SpeechWish]
    ) -> list[tuple[str, Voice | Broken]]:
        """The named speech strategies in order, with the same rules as `conversations`."""
        self._check_names(SPEECH.name, names, lambda name: self._configs.exists(SPEECH, app_id, name))
        found: list[tuple[str, Voice | Broken]] = []
        for name in names:
            try:
                found.append((name, self.voice(app_id, name, wishes, language=None)))
            except ServiceError as error:
                found.append((name, Broken(name, error)))
        _check_one_sound([voice for _, voice in found])
        return found

    def assessors(self, app_id: str, name: str, *, language: str) -> list[tuple[str, Grader | Broken]]:
        """The accounts of a pronunciation strategy by name, in order.

        It does not exist: `ItemNotFound`. All accounts broken: `ConfigInvalid`. It lacks the language:
        `InvalidParameter`.
        """
        if not self._configs.exists(PRONUNCIATION, app_id, name):
            raise ItemNotFound(f"strategy names no {PRONUNCIATION.name} strategy of this app")
        config = self._configs.get(PRONUNCIATION, app_id, name).value
        _check_language(config.languages, "language", language)
        found: list[tuple[str, Grader | Broken]] = []
        for call in config.accounts:
            try:
                found.append((call.account, self._grader(app_id, name, call)))
            except ServiceError as error:
                found.append((call.account, Broken(call.account, error)))
        _check_one_sound([grader for _, grader in found])
        return found

    def _grader(self, app_id: str, name: str, call: VendorCall) -> Grader:
        account = self._account(app_id, call, "assessment")
        spec = AssessmentSpec(model=call.model, options=call.options, connect_s=call.waits.connect_s)
        client = _client(f"pronunciation {name}", assessor, self._http, account, spec)
        return Grader(call, account.platform, client, self._gate(app_id, call.account))

    def _conversation(self, app_id: str, name: str) -> Strategy | Broken:
        key = (app_id, name)
        if key not in self._made:
            try:
                self._made[key] = self._make(app_id, name)
            except ServiceError as error:
                if isinstance(error, ItemNotFound):
                    return Broken(name, error)  # not kept: anybody can ask for any name
                self._made[key] = Broken(name, error)
        return self._made[key]

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
        """The one gate of an account; a new one where the account's limits were changed."""
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
        if own_engines and (what := self._engines.missing.get(call.model)):
            raise ConfigInvalid(f"vendor_accounts {name}: {call.model} is missing: {what}")
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
            raise ItemNotFound(f"strategies name no {kind} strategy of this app")


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


def _check_one_sound(found: Sequence[object]) -> None:
    broken = [strategy for strategy in found if isinstance(strategy, Broken)]
    existing = [strategy for strategy in broken if not isinstance(strategy.fault, ItemNotFound)]
    by_config = [strategy for strategy in existing if isinstance(strategy.fault, ConfigInvalid)]
    if by_config and len(by_config) == len(existing) and len(broken) == len(found):
        raise by_config[0].fault.with_traceback(None)  # it is kept: it must not gather frames


def _check_language(languages: Sequence[str] | None, field: str, language_code: str) -> None:
    if languages is None:
        return
    wanted = language_code.lower()
    for language in languages:
        if wanted == language.lower() or wanted.startswith(f"{language.lower()}-"):
            return
    raise InvalidParameter(f"{field} {language_code} is not one of {', '.join(languages)}")


def price_of(call: VendorCall) -> UnitPrice:
    """A strategy's prices as money is counted."""
    return UnitPrice(Decimal(str(call.price.input)), Decimal(str(call.price.output)))


def hedge_of(call: VendorCall) -> Hedge | None:
    """A strategy's hedge as attempts want it, in seconds."""
    after = call.hedge_after_ms
    return after / 1000 if isinstance(after, int) else after
