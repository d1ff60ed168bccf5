"""Kind `pronunciation`: who grades how a text is read aloud."""

from pydantic import Field

from storage.kinds.base import ConfigKind
from storage.kinds.strategies import VendorCall
from streams.wire.model import Model


class Pronunciation(Model):
    accounts: list[VendorCall] = Field(min_length=1, max_length=16)
    """Tried in order until one has graded all of the audio."""
    languages: list[str] | None = Field(default=None, min_length=1, max_length=500)
    """Language codes that are graded (`en` stands for every `en-…`); absent: any."""


PRONUNCIATION = ConfigKind("pronunciation", "Pronunciation assessment", Pronunciation)
