"""Differences between two values of a config."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest
from typing import Any


class Absent(Enum):
    ABSENT = "absent"


ABSENT = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. `path` has the form `sign_keys[1].id`; a missing value is `ABSENT`."""

    path: str
    before: Any
    after: Any


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """Yield a difference for each leaf value that is not equal, in field order."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before | after:
            inner = f"{path}.{key}" if path else key
            yield from differences(before.get(key, ABSENT), after.get(key, ABSENT), inner)
    elif isinstance(before, list) and isinstance(after, list):
        for index, (old, new) in enumerate(zip_longest(before, after, fillvalue=ABSENT)):
            yield from differences(old, new, f"{path}[{index}]")
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        yield Difference(path, before, after)
