"""Figures in a page of prose: they stand between two marks, and a new run replaces them."""

from pathlib import Path


def write_between(path: Path, marks: tuple[str, str], written: str) -> None:
    """Replace what stands in `path` between the lines `marks`; a file that does not exist is made."""
    begin, end = marks
    text = path.read_text() if path.exists() else f"{begin}\n{end}\n"
    before, found_begin, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"{path} has no line {begin} with {end} behind it")
    path.write_text(f"{before}{begin}\n{written}{end}{after}")
