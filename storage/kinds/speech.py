"""Kind `speech`: text to speech."""

from typing import Literal

from pydantic import Field

from storage.kinds.base import ConfigKind
from storage.kinds.strategies import OnAbandon, VendorCall


class Speech(VendorCall):
    voice: str = ""
    speed: float = Field(default=1.0, ge=0.25, le=4.0)
    prompt: str = ""
    """How to speak, where the vendor takes instructions."""
    language_code: str | None = None
    """Absent: the `target_language_code` of a conversation, else the voice's own."""
    languages: list[str] | None = Field(default=None, min_length=1, max_length=500)
    """Language codes that it speaks (`en` stands for every `en-…`); absent: any."""
    audio_format: Literal["mp3", "wav"] = "mp3"
    need_viseme: bool = False
    """Whether to tell mouth shapes; by the vendor's times where it gives any, else estimated."""
    min_realtime_factor: float = Field(default=1.2, ge=0, le=100)
    """How many seconds of audio must come in a second, or the next strategy speaks; 0: however slowly it comes."""
    on_abandon: OnAbandon = "cancel"
    cache: bool = False
    """Whether what was said once is kept and said again to all users of the app, where nothing in it differs."""
    cache_days: float = Field(default=30, gt=0, le=3650)
    """How long it is kept after it was last said."""


SPEECH = ConfigKind("speech", "Text to speech", Speech)
