"""Kind `conversation`: a speech recognizer, a language model and a voice under one name."""

from typing import Annotated, Literal

from pydantic import Field

from storage.configs.kinds.base import ConfigKind, Ref
from storage.configs.kinds.strategies import OnAbandon, VendorCall
from streams.wire.model import Model


class Chat(VendorCall):
    account: Annotated[str, Ref("vendor_accounts", offers="chat")]
    system_prompt: str = ""
    """Template of the system prompt. `{{.a.b}}` is replaced by that value of the request's `params`, or by nothing
    if it is missing."""
    context_tokens: int = Field(default=4096, ge=1, le=100_000_000)
    """Maximum size of the model's input in tokens, as estimated. Older records of the history are left out."""
    max_tokens: int | None = Field(default=None, ge=1, le=100_000_000)
    """Maximum length of the answer in tokens. Default: the model's own limit."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature. Default: the model's own."""


class Conversation(Model):
    chat: Chat
    """The language model."""
    recognition: Annotated[str | None, Ref("recognition")] = None
    """Name of a config of kind `recognition`. If absent, audio input is not supported."""
    speech: Annotated[str | None, Ref("speech")] = None
    """Name of a config of kind `speech`. If absent, the answer is text only."""
    paragraph_delimiter: str = Field(default="\n\n", min_length=1, max_length=16)
    """Text that separates the paragraphs of an answer."""
    sentence_characters: int = Field(default=200, ge=20, le=2000)
    """Sentences after the first are combined for synthesis up to this number of characters."""
    on_break: Literal["fail", "restart", "continue"] = "fail"
    """What happens if the model breaks off in the middle of an answer. `fail`: the stream ends with an error.
    `restart`: the next strategy writes a new answer. `continue`: the next strategy whose model supports it
    continues the answer."""
    on_abandon: OnAbandon = "cancel"
    """What happens if no reader is left and none returns in time. `cancel`: the calls to vendors are cancelled, and
    the stored answer remains incomplete. `drain`: the stream continues to its end, so that its usage is known."""
    durable: bool = False
    """Whether the events of a stream are copied to Valkey before they are sent, which delays them by up to 100 ms.
    If its process dies, its clients can then read everything that was said on another process. That one continues
    the answer if `on_break` is `continue`, the answer is not spoken, and this strategy or a later one has a model
    that supports it. Otherwise, the stream ends with an `error`. This costs about ten scripts a second per stream
    in     Valkey. It applies if any strategy of the request has it."""
    voices_at_once: int = Field(default=2, ge=1, le=8)
    """Maximum number of concurrent syntheses per answer."""


CONVERSATION = ConfigKind("conversation", "Conversation", Conversation)
