"""The calculation of sizes, from tables as the measuring commands write them."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.generated_section import between
from bench.operations.__main__ import KINDS
from bench.operations.measuring import Cost, Memory
from bench.operations.report import COLUMNS, summary, write_report
from bench.sizing.__main__ import GUIDE, MARKS, TABLES, calculation, main
from bench.sizing.assumptions import Assumptions
from bench.sizing.figures import Measured, read_figures
from bench.sizing.needs import DURABLE, NEW, SPOKEN, needs_of
from bench.store_counters import COMMAND
from deploy.running import Failed

ONLY_TURNS = {"rest": 0, "logins": 0, "new_users": 0, "scores": 0, "emails": 0, "payments": 0, "spoken": 0}
DAY_S = 86_400


def cost_of(name: str, commands: float = 10, **costs: float) -> Cost:
    found = dict.fromkeys(COLUMNS.values(), 0.0) | {COMMAND + "get": commands - 1, COMMAND + "set": 1.0}
    return Cost(name, 1000, 1.5, 3_000, found | costs)


@pytest.fixture
def guide(tmp_path: Path) -> Path:
    """A guide with figures: a call takes 10 commands and a millisecond of the node, a durable turn 30 commands."""
    costs = [cost_of(kind.name, 30 if kind.name == DURABLE else 10, **{"cpu node": 0.001}) for kind in KINDS]
    memories = [Memory("turn", 600, 500), Memory("turn, `durable`", 20_000, 15_000)]
    text = summary(costs, memories, deltas=100, pace_ms=30, machine="A machine", command="a command")
    write_report(tmp_path / "sizing.md", text)
    return tmp_path / "sizing.md"


@pytest.fixture
def measured(guide: Path) -> Measured:
    return read_figures(guide, TABLES)


def test_the_tables_are_read_as_they_were_written(measured: Measured):
    assert (measured.deltas, measured.stream_s) == (100, 3)
    assert set(measured.costs) == {kind.name for kind in KINDS}
    assert measured.costs[NEW] == {
        "calls": 1000,
        "Valkey commands": 10,
        **dict.fromkeys(COLUMNS, 0),
        "node µs": 1000,
        "to the client B": 3000,
    }
    assert measured.memory["turn, `durable`"] == {"while it runs": 20_000, "after its end": 15_000}
    assert measured.index_bytes["conversation_records"] == pytest.approx(90, abs=5)


def test_needs_are_those_of_all_calls_at_the_peak(measured: Measured):
    assumed = Assumptions(turns=2, deltas=100, peak=3, **ONLY_TURNS)

    need = needs_of(DAY_S * 100, assumed, measured)

    assert need.turns_per_s == pytest.approx(600)
    assert (need.rest_per_s, need.commands_per_s) == (pytest.approx(0), pytest.approx(6_000))
    assert need.node_cores == pytest.approx(0.6)
    assert need.streams == pytest.approx(600 * assumed.stream_s)


def test_longer_and_durable_answers_cost_more(measured: Measured):
    assumed = Assumptions(turns=2, deltas=100, stream_s=measured.stream_s, **ONLY_TURNS)
    need = needs_of(DAY_S, assumed, measured)

    longer = needs_of(DAY_S, replace(assumed, deltas=300), measured)
    durable = needs_of(DAY_S, replace(assumed, durable=0.5), measured)

    assert longer.node_cores == pytest.approx(3 * need.node_cores)
    assert durable.commands_per_s == pytest.approx(2 * need.commands_per_s)
    assert durable.valkey_gb > 10 * need.valkey_gb


def test_what_durable_adds_grows_with_the_length_of_streams(measured: Measured):
    costs = dict(measured.costs)
    costs[DURABLE] = {**costs[DURABLE], "node µs": 1_500, "Valkey µs": 100, "WAL B": 50}
    measured = replace(measured, costs=costs)
    plain = Assumptions(turns=1, peak=1, deltas=100, turn_bytes=1_600, wal=1, stream_s=3, **ONLY_TURNS)

    def added(**changes: float) -> tuple[float, ...]:
        """Return what a turn needs more if it is durable."""
        without = needs_of(DAY_S, replace(plain, **changes), measured)
        need = needs_of(DAY_S, replace(plain, durable=1, **changes), measured)
        return (
            need.commands_per_s - without.commands_per_s,
            (need.valkey_cores - without.valkey_cores) * 1e6,
            (need.node_cores - without.node_cores) * 1e6,
            (need.wal_mb_per_s - without.wal_mb_per_s) * 1e6,
        )

    assert added() == pytest.approx((20, 100, 500, 50))
    assert added(stream_s=30) == pytest.approx((200, 1_000, 5_000, 50))


def test_the_log_of_a_durable_stream_grows_with_its_deltas(measured: Measured):
    plain = Assumptions(turns=1, deltas=100, **ONLY_TURNS)

    def added(assumed: Assumptions) -> float:
        durable = needs_of(DAY_S, replace(assumed, durable=1), measured)
        return durable.valkey_gb - needs_of(DAY_S, assumed, measured).valkey_gb

    assert added(replace(plain, deltas=300)) == pytest.approx(3 * added(plain))


def test_wal_contains_the_text_of_turns(measured: Measured):
    assumed = Assumptions(turns=2, deltas=100, peak=3, wal=2, turn_bytes=5_000, **ONLY_TURNS)

    need, more = (needs_of(DAY_S * 1_000, replace(assumed, turn_bytes=size), measured) for size in (5_000, 15_000))

    turns_per_s, kept_bytes = 6_000, 10_000
    assert more.wal_mb_per_s - need.wal_mb_per_s == pytest.approx(turns_per_s * kept_bytes * 2 / 1e6)
    assert need.wal_mb_per_s == pytest.approx(turns_per_s * (5_000 - 1_600) * 2 / 1e6)


def test_the_first_bottleneck_is_the_server_that_is_smallest_for_its_needs(measured: Measured):
    assumed = Assumptions()

    disk, memory = (
        needs_of(10_000_000, replace(assumed, **small), measured).bottlenecks
        for small in ({"postgres_tb": 0.001}, {"postgres_gb": 1})
    )

    assert disk[0].name == "PostgreSQL: disk"
    assert memory[0].name == "PostgreSQL: memory for indexes"
    assert disk[0].of_one > disk[1].of_one >= disk[2].of_one


def test_the_command_writes_the_tables_with_the_given_assumptions(guide: Path, capsys: pytest.CaptureFixture[str]):
    guide.write_text(f"{guide.read_text()}\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n")

    assert main(["--turns", "7", "--figures", str(guide), "--report", str(guide)]) == 0

    text = guide.read_text()
    assert "| `--turns` | turns per user and day | 7 |" in text
    assert "| daily users | 1 million | 10 million | 100 million |" in text
    assert "| **first bottleneck** | " in text
    assert "old" not in text
    assert text.endswith("after\n")
    assert capsys.readouterr().out in text


def test_a_guide_without_figures_is_refused(tmp_path: Path):
    write_report(tmp_path / "sizing.md", "nothing measured")

    with pytest.raises(Failed, match=r"run bench\.operations"):
        read_figures(tmp_path / "sizing.md", TABLES)


def test_the_calculation_in_the_guide_is_that_of_its_figures():
    calculated = calculation(Assumptions(), read_figures(GUIDE, TABLES))

    written = between(GUIDE, MARKS).strip()
    assert written == calculated.strip(), "run: python -m bench.sizing --report docs/operating/sizing.md"


def test_the_guide_has_figures_of_each_call_that_is_calculated_with():
    measured = read_figures(GUIDE, TABLES)

    assert {kind.name for kind in KINDS} == set(measured.costs)
    assert measured.costs[DURABLE]["Valkey commands"] > measured.costs[NEW]["Valkey commands"]
    assert measured.costs[SPOKEN]["files B"] > 0
