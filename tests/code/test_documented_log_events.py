"""docs/operating/logs.md says what each warning and error of stores, money and emails means, and what to do."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.code.source_files import ROOT

AREAS = (
    "app/ai/images/tasks.py",
    "app/services.py",
    "app/assets/*.py",
    "app/work/event_delivery.py",
    "app/work/partitions.py",
    "app/http/rows/webhooks.py",
    "app/leaderboards/*.py",
    "app/mail/*.py",
    "app/http/links.py",
    "app/platforms/*.py",
    "app/payments/**/*.py",
    "app/refunds/*.py",
    "storage/availability.py",
    "storage/configs/store.py",
    "storage/withdrawals/results.py",
    "app/webhooks.py",
    "app/withdrawals/*.py",
    "storage/leaderboards/index.py",
    "storage/mail/opens.py",
    "storage/payments/**/*.py",
    "storage/withdrawals/withdrawals.py",
    "vendors/objects.py",
    "vendors/payments/**/*.py",
)
"""The files of stores, configs, payments, assets, withdrawals, leaderboards, emails and the delivery of events."""
LEVELS = {"warning", "error", "exception", "critical"}


def logged(source: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the level of each warning and error in a module. A name must be a constant."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr=level), args=[ast.Constant(value=str(name))]) if level in LEVELS:
                yield name, level
            case ast.Call(func=ast.Attribute(value=ast.Name(id="log" | "bound"), attr=level)) if level in LEVELS:
                raise AssertionError(f"line {node.lineno}: the name of a {level} must be a constant")


def documented() -> list[tuple[str, str]]:
    """Return the name and the level of each row of the table. A row has a meaning, and what to do."""
    page = (ROOT / "docs" / "operating" / "logs.md").read_text()
    return re.findall(r"^\| `(\w+\.\w+)` \| (warning|error) \| [^|]+ \| [^|]+ \|$", page, re.MULTILINE)


def test_each_warning_and_error_of_these_files_is_documented() -> None:
    found = set()
    for pattern in AREAS:
        paths = list(ROOT.glob(pattern))
        assert paths, f"no file is named {pattern}"
        for path in paths:
            found |= set(logged(path.read_text()))
    assert sorted(documented()) == sorted(found)


def test_names_are_found_however_they_are_logged() -> None:
    source = "log.warning('a.b', x=1)\nlog.bind(y=2).error('c.d')\nbound.error(\n    'e.f',\n)\nlog.info('g.h')"
    assert list(logged(source)) == [("a.b", "warning"), ("c.d", "error"), ("e.f", "error")]
    with pytest.raises(AssertionError, match="line 1"):
        list(logged("log.error(f'a.{b}')"))
