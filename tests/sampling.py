"""Which combinations of a test's parameters all runs include. `make soak` runs the others."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest


def paired(cases: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Return all pairs of `cases` and `others` as parameters.

    All runs include each member of the longer list with one of the other list, in turn, and so all of both lists.
    """
    fewer = min(len(cases), len(others))
    return [
        pytest.param(case, other, id=f"{case}-{other}", marks=_soak_unless(number % fewer == at % fewer))
        for (number, case), (at, other) in product(enumerate(cases), enumerate(others))
    ]


def sampled(cases: Iterable[Any], always: Iterable[Any]) -> list[Any]:
    """Return `cases` as parameters. All runs include those of `always`."""
    chosen = list(always)
    return [pytest.param(case, id=str(case), marks=_soak_unless(case in chosen)) for case in cases]


def _soak_unless(chosen: bool) -> list[pytest.MarkDecorator]:
    return [] if chosen else [pytest.mark.soak]
