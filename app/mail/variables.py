"""Limits on the variables of a request: their number and their size."""

from typing import Annotated, Any

from pydantic import AfterValidator

from streams.wire.codec import dumps
from streams.wire.errors import listed

MAX_VARIABLES = 64
MAX_VALUE_BYTES = 4096


def _bounded(variables: dict[str, Any]) -> dict[str, Any]:
    if len(variables) > MAX_VARIABLES:
        raise ValueError(f"must have at most {MAX_VARIABLES} entries")
    for name, value in variables.items():
        if len(value.encode() if isinstance(value, str) else dumps(value)) > MAX_VALUE_BYTES:
            raise ValueError(f"must have values of at most {MAX_VALUE_BYTES} bytes, unlike {listed([name])}")
    return variables


CustomVariables = Annotated[dict[str, Any], AfterValidator(_bounded)]
