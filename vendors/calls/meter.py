"""Usage of an attempt: as reported by the vendor, or estimated from the items."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeGuard

from vendors.protocols import TextDelta, Transcript, Usage

BYTES_PER_TOKEN = 4


def estimated_tokens(text: str) -> int:
    """Estimate tokens as UTF-8 bytes / 4, rounded up."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class UnitPrice:
    """The price of one input unit and of one output unit."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)


FREE = UnitPrice()


def is_count(value: object) -> TypeGuard[int]:
    """Return whether a number reported by a vendor is a plausible count of tokens, characters or seconds."""
    return type(value) is int and 0 <= value < 1 << 31


class Meter:
    """Measures the usage of one attempt from its items.

    `input_token`: our own count of the input, or a function that returns it once it is known.
    `ignore_reports`: the price counts the input in a unit of ours (code points of a text to speak), so the vendor's
    report is ignored.
    """

    def __init__(self, input_token: int | Callable[[], int] = 0, *, ignore_reports: bool = False) -> None:
        self._input_token = input_token
        self._ignore_reports = ignore_reports
        self._bytes = 0
        self._usage: Usage | None = None

    def observe(self, item: Any) -> None:
        if isinstance(item, TextDelta):
            text = item.text
            self._bytes += len(text) if text.isascii() else len(text.encode())
        elif isinstance(item, Transcript):
            reported = item.seconds
            if reported is not None and math.isfinite(reported) and is_count(seconds := math.ceil(reported)):
                self._usage = Usage(seconds, 0)
        elif isinstance(item, Usage) and is_count(item.input_token) and is_count(item.output_token):
            self._usage = item

    @property
    def usage(self) -> Usage:
        if self._usage is not None and not self._ignore_reports:
            return self._usage
        input_token = self._input_token if isinstance(self._input_token, int) else self._input_token()
        return Usage(input_token, 0 if self._ignore_reports else -(-self._bytes // BYTES_PER_TOKEN))

    @property
    def source(self) -> Literal["vendor", "estimated"]:
        return "vendor" if self._usage is not None else "estimated"
