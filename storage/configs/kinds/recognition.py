"""Kind `recognition`: speech to text."""

from typing import Annotated

from pydantic import Field

from storage.configs.kinds.base import ConfigKind, Ref
from storage.configs.kinds.strategies import VendorCall


class Recognition(VendorCall):
    account: Annotated[str, Ref("vendor_accounts", offers="recognition")]
    languages: list[str] | None = Field(default=None, min_length=1, max_length=500)
    """Supported language codes. `en` includes every `en-…`, `zh-TW` also `zh-Hant-TW`, and a request for `en` gets
    any `en-…`. If absent, any language is accepted."""
    prompt: str = ""
    """Prompt for the recognizer if the client sends no `stt_prompt`."""


RECOGNITION = ConfigKind("recognition", "Speech to text", Recognition)
