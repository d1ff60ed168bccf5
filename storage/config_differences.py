"""Where two values of a config differ."""

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
    """`path` is written as in messages, `sign_keys[1].id`. A side that has nothing there is `ABSENT`."""

    path: str
    before: Any
    after: Any


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """Every innermost place where the two are not equal, in the order of their fields."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before | after:
            inner = f"{path}.{key}" if path else key
            yield from differences(before.get(key, ABSENT), after.get(key, ABSENT), inner)
    elif isinstance(before, list) and isinstance(after, list):
        for index, (old, new) in enumerate(zip_longest(before, after, fillvalue=ABSENT)):
            yield from differences(old, new, f"{path}[{index}]")
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        yield Difference(path, before, after)
