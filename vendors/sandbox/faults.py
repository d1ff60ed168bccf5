"""What a sandboxed vendor does wrong, and how the key of a call orders it.

A key is `sandbox`, then `name=value` behind commas, values percent-encoded:
`sandbox,fault=cut_mid_stream,position=before,rate=0.05,seed=7`. Any other key is a plain good one; an empty
one and `wrong` are refused.
"""

import random
from enum import StrEnum
from typing import Annotated, Self
from urllib.parse import quote, unquote

from pydantic import BeforeValidator, Field, ValidationError

from streams.wire.errors import InvalidParameter
from streams.wire.model import Model, faults

_PREFIX = "sandbox"


class Fault(StrEnum):
    """Those up to `WRONG_CONTENT_TYPE` come instead of an answer, the others within one."""

    REFUSE = "refuse"
    """The connection is reset before a byte of an answer: a listener cannot refuse one caller alone."""
    UNAUTHORIZED = "unauthorized"
    RATE_LIMITED = "rate_limited"
    OUT_OF_QUOTA = "out_of_quota"
    SERVER_ERROR = "server_error"
    UNAVAILABLE = "unavailable"
    HANG_BEFORE_HEADERS = "hang_before_headers"
    WRONG_CONTENT_TYPE = "wrong_content_type"
    HANG_BEFORE_OUTPUT = "hang_before_output"
    STALL_MID_STREAM = "stall_mid_stream"
    CUT_MID_STREAM = "cut_mid_stream"
    MALFORMED_FRAME = "malformed_frame"
    ERROR_INSIDE_200 = "error_inside_200"
    EMPTY_ANSWER = "empty_answer"
    SLOW_DRIP = "slow_drip"
    """Outputs that come slowly; at position 0, of a chat model, frames without output that never end."""


REFUSALS = frozenset(
    {Fault.UNAUTHORIZED, Fault.RATE_LIMITED, Fault.OUT_OF_QUOTA, Fault.SERVER_ERROR, Fault.UNAVAILABLE}
)
"""Each vendor has its own words for them."""


def _outputs(position: object) -> object:
    return {"before": 0, "after": 1}.get(position, position) if isinstance(position, str) else position


class Orders(Model, extra="forbid"):
    """How a call goes."""

    name: str = _PREFIX
    """Under which the bill lists it."""
    fault: Fault | None = Field(default=None, strict=False)
    position: Annotated[int, BeforeValidator(_outputs), Field(ge=0)] = 1
    """After how many outputs the fault comes: `before` is 0, `after` 1. At the answer's end at the latest."""
    rate: float = Field(default=1, ge=0, le=1)
    """The share of calls that have the fault."""
    seed: int = 0
    """Of the dice: a key sees the same row of faults in every sandbox."""
    times: int | None = Field(default=None, ge=0)
    """So many calls with this key have the fault; those behind them have none."""
    delay_ms: int = Field(default=0, ge=0)
    """Before the first output."""
    pace_ms: int = Field(default=0, ge=0)
    """Between two outputs."""
    retry_after_s: float = Field(default=1, ge=0)
    """What a refusal that has to do with load tells."""
    text: str | None = None
    """What a recogniser hears, or a model says; absent: what the content of the sandbox makes of the request."""

    @classmethod
    def of_key(cls, key: str) -> Self:
        """The orders in `key`; `InvalidParameter` where one is misspelt."""
        head, *given = key.split(",")
        if head != _PREFIX:
            return cls(name=f"{key[:4]}…")
        values = {name: unquote(value) for name, _, value in (order.partition("=") for order in given)}
        try:
            return cls.model_validate_strings(values, strict=False)
        except ValidationError as error:
            path, what = next(faults(error))
            raise InvalidParameter(f"sandbox key: {path} {what}") from None

    def has_fault(self, nth_call: int) -> bool:
        """Whether the call with this number, from 0, of its key has the fault."""
        if self.fault is None or (self.times is not None and nth_call >= self.times):
            return False
        dice = random.Random(f"{self.seed} {nth_call}")  # noqa: S311 - to be the same every time
        return self.rate >= 1 or dice.random() < self.rate


def key_of(**orders: object) -> str:
    """The key that gives these orders: `key_of(fault="cut_mid_stream", text="Hello, you")`."""
    return ",".join([_PREFIX, *(f"{name}={quote(str(value), safe='')}" for name, value in orders.items())])
