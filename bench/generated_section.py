"""Write generated figures into a document, between two marker lines."""

from pathlib import Path


def write_between(path: Path, marks: tuple[str, str], content: str) -> None:
    """Replace the text between the two lines `marks` in `path`. A missing file is created.

    Raise `ValueError` if the file lacks a mark.
    """
    before, _, after = _parts(path, marks)
    path.write_text(f"{before}{marks[0]}\n{content}{marks[1]}{after}")


def between(path: Path, marks: tuple[str, str]) -> str:
    """Return the text between the two lines `marks` in `path`. Raise `ValueError` if the file lacks a mark."""
    return _parts(path, marks)[1]


def _parts(path: Path, marks: tuple[str, str]) -> tuple[str, str, str]:
    """Return the text before, between and after the marks."""
    begin, end = marks
    text = path.read_text() if path.exists() else f"{begin}\n{end}\n"
    before, found_begin, rest = text.partition(begin)
    inside, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"{path} has no line {begin} followed by a line {end}")
    return before, inside, after
