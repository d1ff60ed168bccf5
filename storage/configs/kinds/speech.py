"""Kind `speech`: text to speech."""

from typing import Annotated, Literal

from pydantic import Field

from storage.configs.kinds.base import ConfigKind, Ref
from storage.configs.kinds.strategies import OnAbandon, VendorCall


class Speech(VendorCall):
    account: Annotated[str, Ref("vendor_accounts", offers="speech")]
    voice: str = ""
    """The vendor's name of the voice."""
    speed: float = Field(default=1.0, ge=0.25, le=4.0)
    """Speaking rate relative to normal speed."""
    prompt: str = ""
    """Instructions on how to speak, for vendors that support them."""
    language_code: str | None = None
    """Language of the speech. Default: the `target_language_code` of a conversation, or the voice's language."""
    languages: list[str] | None = Field(default=None, min_length=1, max_length=500)
    """Supported language codes. `en` includes every `en-…`, `zh-TW` also `zh-Hant-TW`, and a request for `en` gets
    any `en-…`. If absent, any language is accepted."""
    audio_format: Literal["mp3", "wav"] = "mp3"
    """Format of the audio that clients receive."""
    need_viseme: bool = False
    """Whether to send mouth shapes. They are estimated if the vendor provides no timing."""
    min_realtime_factor: float = Field(default=1.2, ge=0, le=100)
    """Minimum seconds of audio that must arrive per second. If less arrives, the next strategy is used.
    0 accepts any pace."""
    on_abandon: OnAbandon = "cancel"
    """What happens if no reader is left and none returns in time. `cancel`: the calls to vendors are cancelled.
    `drain`: the stream continues to its end, so that its usage is known."""
    cache: bool = False
    """Whether speech is cached. The same text with the same settings is then synthesized once for all users of the
    app."""
    cache_days: float = Field(default=30, ge=0.01, le=3650)
    """Days for which cached speech is kept after its last use."""


SPEECH = ConfigKind("speech", "Text to speech", Speech)
