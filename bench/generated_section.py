"""Write generated figures into a document, between two marker lines."""

from pathlib import Path


def write_between(path: Path, marks: tuple[str, str], content: str) -> None:
    """Replace the text between the two lines `marks` in `path`. A missing file is created.

    Raise `ValueError` if the file lacks a mark.
    """
    begin, end = marks
    text = path.read_text() if path.exists() else f"{begin}\n{end}\n"
    before, found_begin, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"{path} has no line {begin} followed by a line {end}")
    path.write_text(f"{before}{begin}\n{content}{end}{after}")
