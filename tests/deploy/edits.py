"""Configuration files of `deploy/`, edited like an operator would."""

from collections.abc import Mapping
from pathlib import Path


def edited(file: Path, edits: Mapping[str, str]) -> str:
    """Return the text of a file with each text of `edits` replaced. Each must stand once in it."""
    text = file.read_text()
    for old, new in edits.items():
        assert text.count(old) == 1, f"{old} must stand once in {file.name}"
        text = text.replace(old, new)
    return text
