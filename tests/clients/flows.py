"""What both clients need to go through the flows of `clients/cases/flows.json`."""

from typing import Any


def filled(value: Any, results: list[Any]) -> Any:
    """Return a value in which `{step, field}` is the field of the result of an earlier step."""
    if isinstance(value, dict):
        if value.keys() == {"step", "field"}:
            return results[value["step"]][value["field"]]
        return {name: filled(inner, results) for name, inner in value.items()}
    return value


def check(seen: Any, expected: Any) -> None:
    """Check that `seen` has the expected fields. It may have others."""
    if isinstance(expected, dict):
        assert expected.keys() <= (seen or {}).keys(), seen
        for name, value in expected.items():
            check(seen[name], value)
    elif isinstance(expected, list):
        assert len(seen) == len(expected)
        for one, other in zip(seen, expected, strict=True):
            check(one, other)
    else:
        assert seen == expected
