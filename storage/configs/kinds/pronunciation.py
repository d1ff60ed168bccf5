"""Kind `pronunciation`: the vendor accounts that assess how a text is read aloud."""

from typing import Annotated

from pydantic import Field

from storage.configs.kinds.base import ConfigKind, Ref
from storage.configs.kinds.strategies import VendorCall
from streams.wire.model import Model


class AssessmentCall(VendorCall):
    account: Annotated[str, Ref("vendor_accounts", offers="assessment")]


class Pronunciation(Model):
    accounts: list[AssessmentCall] = Field(min_length=1, max_length=16)
    """Accounts in order of preference. The next one is tried if one fails."""
    languages: list[str] | None = Field(default=None, min_length=1, max_length=500)
    """Supported language codes. `en` includes every `en-…`, `zh-TW` also `zh-Hant-TW`, and a request for `en` gets
    any `en-…`. If absent, any language is accepted."""


PRONUNCIATION = ConfigKind("pronunciation", "Pronunciation assessment", Pronunciation)
