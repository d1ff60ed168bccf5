"""The comparison of the operations for operators with those that the pages of the console call."""

from pathlib import Path

from tests.browser.used_operations import (
    UsedOperations,
    faults_of,
    faults_of_layouts,
    modules,
    operation_of,
    operations,
)

KINDS, RETRY, DROP = (
    "GET /admin/api/kinds",
    "POST /admin/api/jobs/held/retry",
    "DELETE /admin/api/jobs/held/{job_id}",
)
ROWS = [row for row in operations() if f"{row.method} {row.path}" in {KINDS, RETRY, DROP}]


async def test_an_operation_that_no_page_calls_is_named() -> None:
    assert faults_of([KINDS, DROP], ROWS, []) == [f"{RETRY}: no page of the console has called it"]
    assert faults_of([KINDS, DROP], ROWS, [RETRY]) == []
    assert faults_of([KINDS, DROP, RETRY], ROWS, [RETRY]) == [f"{RETRY}: a page of the console has called it"]
    assert faults_of([KINDS, DROP, RETRY], ROWS, ["GET /old"]) == ["GET /old: there is no such operation"]


async def test_a_change_that_was_made_at_one_layout_only_is_named() -> None:
    used = [(KINDS, "wide"), (RETRY, "wide"), (DROP, "narrow"), (DROP, "narrow"), (RETRY, "narrow")]
    assert faults_of_layouts(used) == [f"{DROP}: called from a narrow page only"]


async def test_a_path_is_that_of_the_row_that_serves_it() -> None:
    assert operation_of("POST", "/admin/api/jobs/held/retry") == RETRY
    assert operation_of("DELETE", "/admin/api/jobs/held/17") == DROP
    assert operation_of("GET", "/admin/api/configs/a/mail/b%2Fc") == "GET /admin/api/configs/{app}/{kind}/{name}"
    assert operation_of("GET", "/console") is None


async def test_only_a_run_of_all_modules_is_compared(tmp_path: Path) -> None:
    used = UsedOperations()
    used.file = tmp_path / "used"
    first, *others = sorted(modules())
    used.file.write_text(f"{first}\t{KINDS}\twide\n")
    assert used.faults() == []
    with used.file.open("a") as file:
        file.writelines(f"{module}\t{DROP}\twide\n" for module in others)
    assert f"{RETRY}: no page of the console has called it" in used.faults()
    assert f"{DROP}: called from a wide page only" in used.faults()
