"""The data files that drive the tests of both clients."""

from pathlib import Path
from typing import Any

from streams.wire.codec import loads

SIGN_KEY = "a key of the tests of clients"
_FOLDER = Path(__file__).parents[2] / "clients/cases"


def cases(name: str) -> Any:
    return loads((_FOLDER / f"{name}.json").read_bytes())


def named(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what `pytest.mark.parametrize` needs for a case each."""
    return {"argvalues": found, "ids": [case["name"] for case in found]}
