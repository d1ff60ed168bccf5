"""Links of the documents lead to files and headings that exist."""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.code.source_files import ROOT, name

SKIPPED = {"build", "node_modules"}
_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`[^`\n]+`")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def documents(root: Path) -> Iterator[Path]:
    """Yield the Markdown files below a folder. Hidden folders, such as virtual environments, are not entered."""
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in SKIPPED]
        yield from (Path(folder, file) for file in files if file.endswith(".md"))


DOCUMENTS = sorted(documents(ROOT))
INDEXES = sorted((ROOT / "docs").glob("*/README.md"))


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


def test_documents_are_those_of_the_repository(tmp_path: Path) -> None:
    for folder in (".venv/lib", "build", "docs/guides", "node_modules/package"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "page.md").touch()
    assert list(documents(tmp_path)) == [tmp_path / "docs/guides/page.md"]
    assert {ROOT / "README.md", ROOT / "docs/operating/README.md", ROOT / "bench/README.md"} <= set(DOCUMENTS)


def test_only_the_documents_that_a_reader_looks_for_first_are_at_the_root() -> None:
    assert {path.name for path in DOCUMENTS if path.parent == ROOT} == {
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "README.md",
    }


@pytest.mark.parametrize("index", INDEXES, ids=name)
def test_an_index_lists_each_page_of_its_folder(index: Path) -> None:
    listed = {link.partition("#")[0] for link in _LINK.findall(prose(index))}
    assert {path.name for path in index.parent.glob("*.md")} - {index.name} <= listed
