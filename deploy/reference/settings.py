"""The page of environment variables, from the fields of `app/settings.py` and their docstrings."""

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from typing import Any, get_type_hints

from app.settings import OF_DEVELOPMENT, OF_LIBRARIES, Settings
from deploy.reference.markdown import NONE, one_line, page_of, table, without_default
from streams.wire.field_docs import field_docs

_ABOUT = """
Each process reads these environment variables when it starts. An invalid one ends it with a line that names it.
[Install](../operating/install.md#2-make-the-environment-file-and-the-keys) shows an environment file. What is not
listed here is a [config](configs.md), which can be changed while the server runs.
"""


def settings_page() -> str:
    return page_of(
        "Settings",
        _ABOUT,
        table(("variable", "default", "meaning"), _rows()),
        "## Variables of `make run`",
        "These are read on a development server that `make run` starts, and ignored by others.",
        table(("variable", "meaning"), ((f"`{name}`", meaning) for name, meaning in OF_DEVELOPMENT.items())),
        "## Variables of libraries",
        "These are read by libraries, and by Python.",
        table(("variable", "meaning"), ((f"`{name}`", meaning) for name, meaning in OF_LIBRARIES.items())),
    )


def _rows() -> Iterator[tuple[str, str, str]]:
    hints, docs = get_type_hints(Settings, include_extras=True), field_docs(Settings, Settings)
    for field in fields(Settings):
        names = getattr(hints[field.name], "__metadata__", ())
        if names:
            meaning, default = without_default(one_line(docs[field.name]))
            yield ", ".join(f"`{name}`" for name in names), default or _default(field), meaning


def _default(field: Field[Any]) -> str:
    if field.default is MISSING:
        return "required"
    return NONE if field.default in (None, ()) else f"`{field.default}`"
