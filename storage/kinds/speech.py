"""Kind `speech`: text to speech."""

from typing import Literal

from pydantic import Field

from storage.kinds.base import ConfigKind
from storage.kinds.strategies import VendorCall


class Speech(VendorCall):
    voice: str = ""
    speed: float = Field(default=1.0, ge=0.25, le=4.0)
    prompt: str = ""
    """How to speak, where the vendor takes instructions."""
    language_code: str | None = None
    """Absent: the `target_language_code` of a conversation, else the voice's own."""
    languages: list[str] | None = Field(default=None, min_length=1)
    """Language codes that it speaks (`en` stands for every `en-…`); absent: any."""
    audio_format: Literal["mp3", "wav"] = "mp3"
    need_viseme: bool = False


SPEECH = ConfigKind("speech", "Text to speech", Speech)
