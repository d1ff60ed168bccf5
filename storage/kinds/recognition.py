"""Kind `recognition`: speech to text."""

from pydantic import Field

from storage.kinds.base import ConfigKind
from storage.kinds.strategies import VendorCall


class Recognition(VendorCall):
    languages: list[str] | None = Field(default=None, min_length=1, max_length=500)
    """Language codes that it hears (`en` stands for every `en-…`); absent: any."""
    prompt: str = ""
    """Hint for the recogniser where the client sends no `stt_prompt`."""


RECOGNITION = ConfigKind("recognition", "Speech to text", Recognition)
