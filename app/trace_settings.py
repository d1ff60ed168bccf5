"""Checks OpenTelemetry's environment variables, because its packages use defaults in place of invalid values."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

_EXPORTER = ("OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_")
_FILES = ("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY")
_COMPRESSIONS = ("none", "gzip", "deflate")
_SAMPLERS = ("always_on", "always_off", "traceidratio")
_LIMITS = (
    "OTEL_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_SPAN_EVENT_COUNT_LIMIT",
    "OTEL_SPAN_LINK_COUNT_LIMIT",
    "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT",
)


def invalid_variable(env: Mapping[str, str]) -> str | None:
    """Return the name of an invalid variable with what is wrong, or `None`. Empty variables count as unset."""
    for name, fault_of in _FAULTS.items():
        value = env.get(name, "").strip()
        if value and (fault := fault_of(value)) is not None:
            return f"{name} {fault}"
    return None


def _file(path: str) -> str | None:
    try:
        with Path(path).open("rb"):
            return None
    except OSError as error:
        return f"must be a file that can be read: {(error.strerror or 'unknown error').lower()}"


def _timeout(value: str) -> str | None:
    return None if 0 < _number(value) < math.inf else "must be a number of seconds"


def _share(value: str) -> str | None:
    return None if 0 <= _number(value) <= 1 else "must be a number from 0 to 1"


def _limit(value: str) -> str | None:
    return None if value.isascii() and value.isdecimal() else "must be a whole number"


def _one_of(known: tuple[str, ...], value: str) -> str | None:
    return None if value.lower() in known else f"must be one of {', '.join(known)}"


def _number(value: str) -> float:
    """Return `value` as a number, or NaN, for which each comparison is false."""
    try:
        return float(value)
    except ValueError:
        return math.nan


_FAULTS: dict[str, Callable[[str], str | None]] = {
    **{f"{prefix}{file}": _file for prefix in _EXPORTER for file in _FILES},
    **{f"{prefix}TIMEOUT": _timeout for prefix in _EXPORTER},
    **{f"{prefix}COMPRESSION": partial(_one_of, _COMPRESSIONS) for prefix in _EXPORTER},
    "OTEL_TRACES_SAMPLER": partial(_one_of, (*_SAMPLERS, *(f"parentbased_{name}" for name in _SAMPLERS))),
    "OTEL_TRACES_SAMPLER_ARG": _share,
    **dict.fromkeys(_LIMITS, _limit),
}
"""By variable: returns what is wrong with a value, or `None`."""
