"""Currencies in configs and requests: ISO 4217 codes in either case, which are read in upper case."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from streams.wire.money import exponent_of


def _upper(code: Any) -> Any:
    # The upper case of some other letters is ASCII too, for example that of the dotless i.
    return code.upper() if isinstance(code, str) and code.isascii() else code


def _known(code: str) -> str:
    exponent_of(code)
    return code


UpperCase = BeforeValidator(_upper)
"""Marks a code that is read in upper case. It is the last annotation, so that it comes before the others."""
Currency = Annotated[str, AfterValidator(_known), UpperCase]
"""The code of a currency that is in use."""
