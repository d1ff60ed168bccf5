"""The request and the reply of a trial."""

from typing import Annotated, Any, Literal

from pydantic import Field

from app.accounts.sign_in.platforms import Platforms
from app.trials.sign_in import SignInTrial
from app.trials.terms import PriceTrial
from streams.wire.model import Model


class TryPath(Model):
    app: str
    """An app of this server."""
    kind: Literal["conversation", "speech", "vendor_accounts", "events", "sign_in", "products"]
    """The kind of the config."""
    name: Annotated[str, Field(max_length=128)]
    """The name of the config, which need not be stored."""


class TryBody(Model):
    value: dict[str, Any]
    """The config to try."""
    text: str = Field(default="", max_length=2000)
    """The user's message, the text to speak, or a text for the data of a test event. Not for sign-in platforms and
    products. All others require it."""
    params: dict[str, Any] = Field(default_factory=dict)
    """The values of `{{.…}}` in the system prompt."""
    model: str = Field(default="", max_length=256)
    """The language model to ask. Only for a vendor account, which names none."""
    proof: Platforms | None = None
    """The proof of an identity, as an app sends it to log in. Required for a sign-in platform, and only for it: the
    field that is given must be this platform."""


class StrategyTrial(Model):
    platform: str
    first_output_ms: int | None = None
    text: str = ""
    """The answer of the language model."""
    audio_base64: str = ""
    """The audio of the voice."""
    mime_type: str = ""
    input_units: int
    output_units: int
    """Tokens of the language model, or characters that were spoken."""
    usage_source: str
    """`vendor`, or `estimated`."""
    price: str
    """In the app's currency."""
    currency: str
    events: list[dict[str, Any]]
    """The first 200 events, each with `at_ms` and `event`."""


class TryReply(Model):
    """The result of the trial, in the field for the kind of the config. It is absent for sinks and after faults."""

    elapsed_ms: int = 0
    strategy: StrategyTrial | None = None
    """The response of a strategy, or of a vendor account."""
    sign_in: SignInTrial | None = None
    """Who has signed in, and what was checked. Also if the proof is refused."""
    prices: list[PriceTrial] | None = None
    """What a payer would pay for a product."""
    left_out: int | None = None
    """How many more prices the product has, which were not tried: after the first 20, or of a payment platform that
    did not answer."""
    error: str | None = None
    """Why the call failed, or why the platform does not confirm the identity. Each price has its own."""
