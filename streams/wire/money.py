"""Money in minor units of its currency, with the currencies of ISO 4217. All arithmetic is exact."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator

_CODES_BY_EXPONENT = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    2: "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW"
    " CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF"
    " IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK"
    " MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP"
    " SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG"
    " YER ZAR ZMW ZWG",
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
EXPONENTS = {code: exponent for exponent, codes in _CODES_BY_EXPONENT.items() for code in codes.split()}
"""The number of decimals of each current currency, up to amendment 180 of ISO 4217 (January 2026).

Codes without a minor unit, such as gold (XAU) and no currency (XXX), are missing.
"""

_DECIMAL = re.compile(r"(-?)([0-9]{1,19})(?:\.([0-9]{1,4}))?")
_MAX_AMOUNT = 2**63 - 1
"""The largest `bigint` of PostgreSQL."""


def exponent_of(currency: str) -> int:
    """Return the number of decimals of a currency. Raises `ValueError` for an unknown code."""
    try:
        return EXPONENTS[currency]
    except KeyError:
        raise ValueError("must be the ISO 4217 code of a current currency, such as EUR") from None


def _upper(code: Any) -> Any:
    # The upper case of some other letters is ASCII too, for example that of the dotless i.
    return code.upper() if isinstance(code, str) and code.isascii() else code


def _known(code: str) -> str:
    exponent_of(code)
    return code


UpperCase = BeforeValidator(_upper)
"""Marks a code that is read in upper case. It is the last annotation, so that it comes before the others."""
Currency = Annotated[str, AfterValidator(_known), UpperCase]
"""The ISO 4217 code of a currency that is in use. Configs and requests may have it in either case."""


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in minor units, such as cents. Amounts of different currencies cannot be combined or compared."""

    amount: int
    currency: str

    def __post_init__(self) -> None:
        exponent_of(self.currency)
        if type(self.amount) is not int:
            raise TypeError("an amount of money is an integer of minor units")
        if abs(self.amount) > _MAX_AMOUNT:
            raise ValueError("is too large an amount")

    @classmethod
    def parse(cls, text: str, currency: str) -> Self:
        """Read a decimal such as `12.30`. Raises `ValueError` if it has more decimals than the currency."""
        exponent = exponent_of(currency)
        match = _DECIMAL.fullmatch(text)
        if match is None or len(match[3] or "") > exponent:
            places = f"a decimal with at most {exponent} places" if exponent else "a whole number"
            raise ValueError(f"must be {places}")
        sign, whole, decimals = match.groups("")
        return cls(int(f"{sign}{whole}{decimals:0<{exponent}}"), currency)

    @property
    def decimal(self) -> str:
        """The amount as a decimal with all places of the currency, such as `12.30`."""
        exponent = exponent_of(self.currency)
        digits = f"{abs(self.amount):0{exponent + 1}}"
        sign = "-" if self.amount < 0 else ""
        return f"{sign}{digits[:-exponent]}.{digits[-exponent:]}" if exponent else f"{sign}{digits}"

    def __str__(self) -> str:
        return f"{self.decimal} {self.currency}"

    def __add__(self, other: Self) -> Self:
        return self._of(self.amount + self._amount_of(other))

    def __sub__(self, other: Self) -> Self:
        return self._of(self.amount - self._amount_of(other))

    def __neg__(self) -> Self:
        return self._of(-self.amount)

    def __lt__(self, other: Self) -> bool:
        return self.amount < self._amount_of(other)

    def __le__(self, other: Self) -> bool:
        return self.amount <= self._amount_of(other)

    def part(self, share: int, whole: int) -> Self:
        """Return `share` / `whole` of the amount, rounded half away from zero."""
        if not 0 <= share <= whole or whole == 0:
            raise ValueError("the share must be from 0 to the whole, and the whole must not be 0")
        part = (2 * abs(self.amount) * share + whole) // (2 * whole)
        return self._of(part if self.amount >= 0 else -part)

    def split(self, weights: Sequence[int]) -> list[Self]:
        """Divide the amount in proportion to `weights`. The parts add up to it.

        Minor units that are left over go to the parts with the largest remainders, to the first of equal ones.
        """
        total = sum(weights)
        if total <= 0 or min(weights) < 0:
            raise ValueError("weights must not be negative, and one must be positive")
        shares = [divmod(abs(self.amount) * weight, total) for weight in weights]
        left = abs(self.amount) - sum(share for share, _ in shares)
        by_remainder = sorted(range(len(shares)), key=lambda index: -shares[index][1])
        rounded_up = set(by_remainder[:left])
        sign = -1 if self.amount < 0 else 1
        return [self._of(sign * (share + (index in rounded_up))) for index, (share, _) in enumerate(shares)]

    def _amount_of(self, other: Self) -> int:
        if other.currency != self.currency:
            raise ValueError(f"{other.currency} cannot be combined with {self.currency}")
        return other.amount

    def _of(self, amount: int) -> Self:
        return type(self)(amount, self.currency)
