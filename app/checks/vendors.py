"""Checks of vendor accounts and strategies against the vendor catalog, when they are written."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic

from pydantic import ValidationError

from actors.clients.vendor_clients import vendor_of
from storage.configs.kinds.conversation import Conversation
from storage.configs.kinds.pronunciation import Pronunciation
from storage.configs.kinds.recognition import Recognition
from storage.configs.kinds.speech import Speech
from storage.configs.kinds.strategies import VendorCall
from storage.configs.kinds.vendor_accounts import VENDOR_ACCOUNTS, VendorAccount
from storage.configs.references import references
from storage.configs.rules import Checked, Fault, Named, Unknown
from streams.languages import well_formed
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model, faults
from vendors.account import AssessmentSpec, ChatSpec, RecognitionSpec, SpeechSpec
from vendors.catalog import (
    ASSESSORS,
    CAPABILITIES,
    CATALOG,
    CHAT_MODELS,
    PLATFORM_IDS,
    RECOGNIZERS,
    SYNTHESIZERS,
    Capability,
    Client,
    Spec,
    platforms_with_aliases,
)

_CAPABILITIES = {capability.name: capability for capability in CAPABILITIES}


def check(value: Model, named: Named, unknown: Unknown) -> Checked:
    """Check a value of any kind. In the value to store, an account's platform is an id, not an alias."""
    if isinstance(value, VendorAccount):
        return _checked_account(value)
    of_calls = [fault for call in _calls(value) for fault in _faults(call, named, unknown)]
    return Checked(value, [*_unoffered(value, named), *_malformed_languages(value), *of_calls])


def _malformed_languages(value: Model) -> Iterator[Fault]:
    """Yield the fields that contain no language code, which would exclude every language."""
    if not isinstance(value, Recognition | Speech | Pronunciation):
        return
    codes = {f"languages[{index}]": code for index, code in enumerate(value.languages or ())}
    if isinstance(value, Speech) and value.language_code:
        codes["language_code"] = value.language_code
    for path, code in codes.items():
        try:
            well_formed(code)
        except ValueError as error:
            yield Fault(path, str(error))


def _unoffered(value: Model, named: Named) -> Iterator[Fault]:
    """Yield the fields that name an account whose platform lacks the required capability."""
    for reference in references(value):
        account = named.get((reference.kind, reference.name))
        if reference.offers is not None and isinstance(account, VendorAccount):
            vendor = vendor_of(_CAPABILITIES[reference.offers], account.platform)
            if isinstance(vendor, str):
                yield Fault(reference.path, f"names {reference.kind} {reference.name}, whose {vendor}")


def _checked_account(account: VendorAccount) -> Checked:
    platform = PLATFORM_IDS.get(account.platform)
    if platform is None:
        return Checked(account, [Fault("platform", f"must be one of {', '.join(platforms_with_aliases())}")])
    fields = {"base_url": account.base_url, "api_key": account.api_key}
    given = {name: field for name, field in fields.items() if field is not None}
    problems = _invalid(CATALOG[platform].account, given, "", "ignore")
    return Checked(account.model_copy(update={"platform": platform}), problems)


@dataclass(frozen=True, slots=True)
class _Call(Generic[Spec, Client]):
    """A vendor call in a strategy at `path`, and the settings that requests cannot change."""

    path: str
    config: VendorCall
    capability: Capability[Spec, Client]
    spec: Spec


def _calls(value: Model) -> Iterator[_Call[Any, Any]]:
    match value:
        case Conversation(chat=chat):
            spec = ChatSpec(chat.model, chat.options, max_tokens=chat.max_tokens, temperature=chat.temperature)
            yield _Call("chat.", chat, CHAT_MODELS, spec)
        case Recognition():
            yield _Call("", value, RECOGNIZERS, RecognitionSpec(value.model, value.options))
        case Speech():
            speech = SpeechSpec(value.model, value.options, audio_format=value.audio_format)
            yield _Call("", value, SYNTHESIZERS, speech)
        case Pronunciation(accounts=accounts):
            for index, call in enumerate(accounts):
                yield _Call(f"accounts[{index}].", call, ASSESSORS, AssessmentSpec(call.model, call.options))


def _faults(call: _Call[Spec, Client], named: Named, unknown: Unknown) -> list[Fault]:
    account = named.get((VENDOR_ACCOUNTS.name, call.config.account))
    if not isinstance(account, VendorAccount):
        return []
    vendor = vendor_of(call.capability, account.platform)
    if isinstance(vendor, str):  # `_unoffered` yields this fault.
        return []
    options = f"{call.path}options"
    if problems := _invalid(vendor.options, call.config.options, options, unknown):
        return problems
    try:
        if vendor.check is not None:
            vendor.check(vendor.options.of(call.config.options), call.spec)
    except InvalidParameter as error:
        name, _, message = error.what.partition(" ")
        return [Fault(f"{options}.{name}", message)]
    return []


def _invalid(model: type[Model], value: Any, path: str, unknown: Unknown) -> list[Fault]:
    try:
        model.model_validate(value, extra=unknown)
    except ValidationError as error:
        return [Fault(f"{path}.{inner}".removeprefix("."), message) for inner, message in faults(error)]
    return []
