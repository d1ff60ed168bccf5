"""JSON of random shape, for tests of the parsers of vendors' streams and responses."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

VERY_MANY = 100 * settings.default.max_examples
"""100,000 in a soak: examples of a property whose faults are rare."""
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)


def random_json(
    names: Sequence[str], *, types: Sequence[str] = ("x",), texts: Sequence[str] = ()
) -> st.SearchStrategy[Any]:
    """Return values with these names of members, types, which are members named `type`, and other texts."""
    scalars = st.none() | st.booleans() | NUMBERS | st.sampled_from(["", *texts])

    def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        plain = st.dictionaries(st.sampled_from([*names, "x"]), inner, max_size=4)
        typed = st.builds(lambda fields, kind: {**fields, "type": kind}, plain, st.sampled_from([*types]))
        return st.lists(inner, max_size=3) | plain | typed

    return st.recursive(scalars, larger, max_leaves=12)


def extended(valid: dict[str, Any], value: Any) -> dict[str, Any]:
    """Return `valid` with the members of a random value that it lacks."""
    return {**value, **valid} if isinstance(value, dict) else valid


def mixed(valid: Callable[[str], dict[str, Any]], values: Iterable[Any]) -> list[Any]:
    """Return a valid event with a numbered text, extended by it, before each random value."""
    return [
        event for number, value in enumerate(values) for event in (extended(valid(f"«{number}»"), value), value)
    ]


def numbers_in(found: bytes | str) -> list[int]:
    """Return the numbers of the valid events whose texts are in `found`, in order."""
    text = found if isinstance(found, str) else found.decode(errors="replace")
    return [int(part.partition("»")[0]) for part in text.split("«")[1:]]
