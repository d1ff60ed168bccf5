"""A run of some attacks replaces their rows in the report, and says where they come from."""

from pathlib import Path

import pytest

from bench.attack.later_runs import write_rows

MARKS = ("<!-- a -->", "<!-- /a -->")
REPORT = """Before.
<!-- a -->

`all`

A machine.

| attack | verdict |
| --- | --- |
| one | met |
| two | missed |
| three | missed |

| attack | seconds |
| --- | --- |
| one | 1 |
| two | 2 |
| three | 3 |

<!-- /a -->
After.
"""


def tables(*names: str) -> str:
    verdicts = "".join(f"| {name} | new |\n" for name in names)
    seconds = "".join(f"| {name} | 9 |\n" for name in names)
    return f"| attack | verdict |\n| --- | --- |\n{verdicts}\n| attack | seconds |\n| --- | --- |\n{seconds}"


def rows_of(text: str) -> list[str]:
    return [
        line for line in text.splitlines() if line.startswith("|") and "---" not in line and "attack" not in line
    ]


def test_rows_are_replaced_in_both_tables_and_new_ones_come_last(tmp_path: Path):
    path = tmp_path / "report.md"
    path.write_text(REPORT)

    write_rows(path, MARKS, tables("two", "four"), names=["two", "four"], run="`some`, today.")

    text = path.read_text()
    assert rows_of(text) == [
        *("| one | met |", "| two | new |", "| three | missed |", "| four | new |"),
        *("| one | 1 |", "| two | 9 |", "| three | 3 |", "| four | 9 |"),
    ]
    assert "\n`all`\n\nA machine.\n\nLater: two, four. `some`, today.\n\n| attack | verdict |\n" in text
    assert text.startswith("Before.\n<!-- a -->\n\n`all`")
    assert text.endswith("| four | 9 |\n\n<!-- /a -->\nAfter.\n")


def test_a_still_later_run_takes_over_its_rows(tmp_path: Path):
    path = tmp_path / "report.md"
    path.write_text(REPORT)
    write_rows(path, MARKS, tables("two", "three"), names=["two", "three"], run="`some`, today.")

    write_rows(path, MARKS, tables("two"), names=["two"], run="`two`, tomorrow.")
    assert "Later: three. `some`, today.\n\nLater: two. `two`, tomorrow.\n" in path.read_text()

    write_rows(path, MARKS, tables("three"), names=["three"], run="`three`, tomorrow.")
    assert "`some`" not in path.read_text()


def test_tables_with_other_columns_are_not_mixed(tmp_path: Path):
    path = tmp_path / "report.md"
    path.write_text(REPORT.replace("verdict", "result"))
    with pytest.raises(ValueError, match="no tables with these columns"):
        write_rows(path, MARKS, tables("two"), names=["two"], run="`some`, today.")
