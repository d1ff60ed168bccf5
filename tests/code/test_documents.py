"""Links of the documents lead to files and headings that exist."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.code.source_files import ROOT, name

SKIPPED = {".venv", "build", "node_modules"}
DOCUMENTS = sorted(path for path in ROOT.rglob("*.md") if not SKIPPED & {*path.relative_to(ROOT).parts})
_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`[^`\n]+`")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@cache
def prose(path: Path) -> str:
    return _BLOCK.sub("", path.read_text())


@cache
def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings, as GitHub makes them."""
    titles = (re.sub(r"[^\w\- ]", "", title.lower()) for title in _HEADING.findall(prose(path)))
    return {title.strip().replace(" ", "-") for title in titles}


def broken(path: Path) -> Iterator[str]:
    for link in _LINK.findall(_CODE.sub("", prose(path))):
        target, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        file = (path.parent / target).resolve() if target else path
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            yield link


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_lead_somewhere(path: Path) -> None:
    assert list(broken(path)) == []


def test_a_link_to_a_missing_file_or_heading_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n[a](#a-page) [b](#b) [c](none.md) [d](page.md#none)\n\n```\n[e](none.md)\n```\n")
    assert list(broken(page)) == ["#b", "none.md", "page.md#none"]
