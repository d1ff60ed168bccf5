"""Usage of an attempt: as reported by the vendor, or estimated from the items."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Self, TypeGuard

from vendors.protocols import TextDelta, Transcript, Usage


def estimated_tokens(text: str) -> int:
    """Estimate how many tokens a text takes, by the length of its characters in UTF-8, rounded up.

    That tells scripts apart: a token has four ASCII characters, but Chinese, Japanese and Korean take up to one and
    a half tokens for each of theirs. Measured with cl100k_base, o200k_base, and the tokenizers of Claude 2 and
    DeepSeek.
    """
    return -(-_quarters(text) // 4)


def _quarters(text: str) -> int:
    """Estimate the tokens of a text, in quarters."""
    if text.isascii():
        return len(text)
    ascii_count = len(text.encode("ascii", "ignore"))
    beyond_bmp = len(text.encode("utf-16-le")) // 2 - len(text)
    other = len(text) - ascii_count - beyond_bmp
    three_bytes = len(text.encode()) - ascii_count - 4 * beyond_bmp - 2 * other
    two_bytes = other - three_bytes
    return ascii_count + 3 * two_bytes + 6 * three_bytes + 10 * beyond_bmp


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
    `output_token`: our count of the output that was observed earlier.
    """

    def __init__(
        self, input_token: int | Callable[[], int] = 0, *, output_token: int = 0, ignore_reports: bool = False
    ) -> None:
        self._input_token = input_token
        self._ignore_reports = ignore_reports
        self._ascii = 4 * output_token
        self._other: list[str] = []
        """The texts that are not only ASCII. They are counted once the usage is asked for."""
        self._usage: Usage | None = None

    @classmethod
    def restored(cls, usage: Usage, source: Literal["vendor", "estimated"]) -> Self:
        """Return the meter of a call that another process has made."""
        meter = cls(usage.input_token, output_token=usage.output_token)
        if source == "vendor":
            meter.observe(usage)
        return meter

    def observe(self, item: Any) -> None:
        if isinstance(item, TextDelta):
            text = item.text
            if text.isascii():
                self._ascii += len(text)
            else:
                self._other.append(text)
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
        quarters = self._ascii + _quarters("".join(self._other))
        return Usage(input_token, 0 if self._ignore_reports else -(-quarters // 4))

    @property
    def source(self) -> Literal["vendor", "estimated"]:
        return "vendor" if self._usage is not None else "estimated"
