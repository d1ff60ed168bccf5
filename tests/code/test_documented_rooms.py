"""Each folder of the code says what it is for, and the files that it and ARCHITECTURE.md name exist."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.code.source_files import FILES, ROOT, name, tree

ROOMS = sorted({path.parent for path in FILES})
PAGES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
ARCHITECTURE_BYTES = 18_000
_NAMED = re.compile(r"`([\w./-]+\.(?:py|sql|lua|js|json|md|toml))`")


def docstring(room: Path) -> str:
    return ast.get_docstring(tree(room / "__init__.py")) or ""


def missing(text: str, files: Iterable[Path]) -> list[str]:
    """Return what a text names that is neither the path of a file nor the end of the path of one of `files`."""
    paths = [f"/{path}" for path in files]
    return [
        named
        for named in _NAMED.findall(text)
        if not (ROOT / named).exists() and not any(path.endswith(f"/{named}") for path in paths)
    ]


@pytest.mark.parametrize("room", ROOMS, ids=name)
def test_a_room_says_what_it_is_for_and_names_files_that_exist(room: Path) -> None:
    assert docstring(room)
    assert missing(docstring(room), room.rglob("*.*")) == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_names_files_that_exist(page: Path) -> None:
    assert missing(page.read_text(), FILES) == []


def test_the_architecture_can_be_read_at_once() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_bytes()) <= ARCHITECTURE_BYTES


def test_a_missing_file_is_found() -> None:
    text = "`main.py` `app/main.py` `none.py` `app/none.lua` `ain.py` `other.py_`"
    assert missing(text, FILES) == ["none.py", "app/none.lua", "ain.py"]
