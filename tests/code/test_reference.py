"""The pages of docs/reference are those that the code generates, and have each variable that is read."""

import re
from typing import get_args

import pytest

from deploy.reference.markdown import NONE, input_table, table, without_default
from deploy.reference.pages import FOLDER, PAGES
from storage.operators.audit import Action
from tests.code.source_files import ROOT

READERS = ("app/settings.py", "app/environment.py")
_READ = re.compile(r'"((?:PARLEY|DATABASE|REDIS|AWS|S3|OTEL)_[A-Z0-9_]+|PORT|HOST)"')


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_what_the_code_generates(name: str) -> None:
    assert (FOLDER / name).read_text() == PAGES[name](), "run `make reference`"


def test_each_variable_that_is_read_is_documented() -> None:
    read = {name for path in READERS for name in _READ.findall((ROOT / path).read_text())}
    assert len(read) > 30
    assert read <= set(re.findall(r"`([A-Z0-9_]+)`", PAGES["settings.md"]()))


def test_each_action_of_the_audit_log_is_documented_once() -> None:
    _, _, text = (ROOT / "docs/operating/operators.md").read_text().partition("| action | subject |\n|---|---|\n")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    documented = [action for row in rows for action in re.findall(r"`([a-z_.]+)`", row.split("|")[1])]
    assert sorted(documented) == sorted(get_args(Action))


def test_a_default_in_words_is_split_from_the_meaning() -> None:
    assert without_default("What it is. Default: that of 1.2.3.4.") == ("What it is.", "that of 1.2.3.4")
    assert without_default("Default: on. It is not the last sentence.") == (
        "Default: on. It is not the last sentence.",
        None,
    )


def test_a_table_shows_types_bounds_and_defaults() -> None:
    schema = {
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "maxLength": 8, "description": "A name | a label."},
            "count": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 9}, {"type": "null"}], "default": 5},
            "key": {"type": "string", "writeOnly": True, "default": None},
            "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}, "default": []},
        },
    }
    assert input_table(schema, ["Part"]).splitlines()[2:] == [
        "| `name` | string, at most 8 characters | required | A name \\| a label. |",
        "| `count` | integer, 1 to 9 | `5` |  |",
        f"| `key` | secret | {NONE} |  |",
        f"| `parts` | list of [Part](#part) | {NONE} |  |",
    ]


def test_an_empty_last_column_is_left_out() -> None:
    assert table(("field", "meaning"), [("`a`", ""), ("`b`", "")]) == "| field |\n|---|\n| `a` |\n| `b` |"
