"""Kind `conversation`: ears, a language model and a voice under one name."""

from typing import Literal

from pydantic import Field

from storage.kinds.base import ConfigKind
from storage.kinds.strategies import OnAbandon, VendorCall
from streams.wire.model import Model


class Chat(VendorCall):
    system_prompt: str = ""
    """`{{.name.of.param}}` is replaced by that value of the request's `params`; a missing one by nothing."""
    context_tokens: int = Field(default=4096, ge=1, le=100_000_000)
    """What of the history goes to the model, newest records first."""
    max_tokens: int | None = Field(default=None, ge=1, le=100_000_000)
    temperature: float | None = Field(default=None, ge=0, le=2)


class Conversation(Model):
    chat: Chat
    recognition: str | None = None
    """Name of a config of kind `recognition`; absent: no audio input."""
    speech: str | None = None
    """Name of a config of kind `speech`; absent: the answer is text alone."""
    paragraph_delimiter: str = Field(default="\n\n", min_length=1, max_length=16)
    sentence_characters: int = Field(default=200, ge=20, le=2000)
    """Short sentences after the first are spoken together up to this length."""
    on_break: Literal["fail", "restart", "continue"] = "fail"
    """When the model breaks off in the middle: end with an error; have the next strategy write the answer anew;
    or have it go on with what was said, where its model takes such a beginning."""
    on_abandon: OnAbandon = "cancel"
    voices_at_once: int = Field(default=2, ge=1, le=8)


CONVERSATION = ConfigKind("conversation", "Conversation", Conversation)
