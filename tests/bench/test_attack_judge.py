"""An attack is judged by the delays of healthy clients, and by what the server holds afterwards."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.attack.attacks import ATTACKS, BY_NAME
from bench.attack.connections import Outcomes
from bench.attack.healthy_clients import Window
from bench.attack.judge import Measurement, ServerState, Targets, judge
from bench.attack.report import BEGIN, END, tables, write_report
from bench.figures import Spread

MIB = 2**20
MS = st.floats(min_value=0, max_value=10_000)


def window(
    *, gap_ms: float = 20, health_ms: float = 2, upload_ms: float = 40, late_ms: float = 0, failed: int = 0
) -> Window:
    gaps = Spread.of([gap_ms / 1000] * 100)
    return Window(
        gap=gaps,
        first_event=gaps,
        health=Spread.of([health_ms / 1000]),
        rest=gaps,
        upload=Spread.of([upload_ms / 1000] * 3),
        streams=10,
        failures={"lost": failed} if failed else {},
        late_ms=late_ms,
    )


NONE = Targets()
SEEN = Measurement(
    calm=window(),
    under=window(),
    calm_after=window(),
    outcomes=Outcomes(opened=100),
    seconds=8,
    before=ServerState(100 * MIB, 50, 1.0, log_bytes=0),
    peak=ServerState(100 * MIB, 150, 3.0, log_bytes=4096),
    after=ServerState(100 * MIB, 50, 3.0, log_bytes=4096),
    max_open=100,
    requests=4,
)


def missed(seen: Measurement, targets: Targets = NONE) -> list[str]:
    return list(judge(seen, targets).missed)


def test_an_attack_without_effect_meets_its_targets():
    assert str(judge(SEEN, Targets())) == "met"


@pytest.mark.parametrize(("took_ms", "expected"), [(329, []), (331, ["upload 331 ms (+291 ms)"])])
def test_an_upload_may_take_twice_its_time_in_the_slower_calm_phase_and_250_ms(took_ms: float, expected: list[str]):
    under = window(upload_ms=took_ms)

    assert missed(replace(SEEN, under=under)) == expected
    assert missed(replace(SEEN, under=under, calm=window(upload_ms=10))) == expected
    assert missed(replace(SEEN, under=under, calm_after=window(upload_ms=10))) == expected


@given(calm_ms=MS, growth_ms=st.floats(min_value=0, max_value=10_000))
def test_gaps_may_grow_by_less_than_20_ms_over_the_baseline(calm_ms: float, growth_ms: float):
    calm = window(gap_ms=calm_ms)
    seen = replace(SEEN, calm=calm, calm_after=window(gap_ms=0), under=window(gap_ms=calm_ms + growth_ms))

    if abs(growth_ms - 20) > 0.001:
        assert bool(missed(seen)) == (growth_ms > 20)


@pytest.mark.parametrize(
    ("under", "expected"),
    [
        (window(gap_ms=41), ["gap p99 41 ms (+21 ms)", "longest gap 41 ms (+21 ms)"]),
        (window(health_ms=51), ["/healthz 51 ms (+49 ms)"]),
        (window(failed=3), ["3 healthy streams or requests failed"]),
        (Window(), ["no healthy stream or request was answered"]),
    ],
)
def test_a_missed_target_names_what_healthy_clients_observed(under: Window, expected: list[str]):
    assert missed(replace(SEEN, under=under)) == expected


@given(gap_ms=MS, health_ms=MS, late_ms=MS)
def test_a_late_healthy_client_explains_only_its_own_delay(gap_ms: float, health_ms: float, late_ms: float):
    seen = replace(SEEN, under=window(gap_ms=gap_ms, health_ms=health_ms, late_ms=late_ms))

    verdict = judge(seen, Targets())

    assert bool(verdict.missed) == (gap_ms - 20 - late_ms >= 20 or health_ms - late_ms >= 50)
    if late_ms == 0:
        assert verdict.uncertain == []


def test_late_healthy_clients_invalidate_a_row():
    seen = replace(SEEN, under=window(gap_ms=45, late_ms=10))

    assert str(judge(seen, Targets())).startswith("inconclusive: gap p99 45 ms (+25 ms)")
    assert str(judge(replace(seen, stopped="stopped"), Targets())) == "missed: stopped"


@pytest.mark.parametrize(
    ("under", "calm_after", "expected"),
    [
        (window(gap_ms=200), window(), ["gap p99 200 ms (+180 ms)", "longest gap 200 ms (+180 ms)"]),
        (window(gap_ms=200), window(gap_ms=181), []),
        (window(gap_ms=200), window(gap_ms=179), ["gap p99 200 ms (+21 ms)", "longest gap 200 ms (+21 ms)"]),
        (window(health_ms=90), window(health_ms=71), []),
        (window(health_ms=90), window(health_ms=69), ["/healthz 90 ms (+21 ms)"]),
        (window(health_ms=49), window(health_ms=1), []),
        (window(upload_ms=400), window(upload_ms=76), []),
        (window(upload_ms=400), window(upload_ms=74), ["upload 400 ms (+326 ms)"]),
    ],
)
def test_a_busy_machine_explains_only_the_delays_of_the_calm_phases(
    under: Window, calm_after: Window, expected: list[str]
):
    busy = replace(SEEN.peak, waited_s=SEEN.seconds)

    assert missed(replace(SEEN, under=under, calm_after=calm_after, peak=busy)) == expected
    assert missed(replace(SEEN, under=under, calm=calm_after, peak=busy)) == expected


def test_a_server_that_does_not_recover_misses_its_target():
    expected = ["healthy clients are still delayed a minute after the attack"]

    assert missed(replace(SEEN, recovered=False)) == expected


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (Outcomes(opened=3, closed_after_s=(9.0, 11.9)), []),
        (Outcomes(opened=3, closed_after_s=(9.0, 20.0)), ["connections closed after 20 s"]),
        (Outcomes(opened=3, still_open=1, closed_after_s=(9.0, 11.0)), ["1 connections never closed"]),
        (Outcomes(refused={"ECONNREFUSED": 3}), []),
    ],
)
def test_connections_must_be_closed_in_time(outcomes: Outcomes, expected: list[str]):
    assert missed(replace(SEEN, outcomes=outcomes), Targets(closed_within_s=12)) == expected


def test_connections_of_one_address_are_bounded():
    targets = Targets(max_open=1000)

    assert missed(replace(SEEN, max_open=1000), targets) == []
    assert missed(replace(SEEN, max_open=1001), targets) == ["1,001 connections at once"]


@pytest.mark.parametrize(
    ("grown_mib", "own_log_bytes", "expected"),
    [(25, 0, []), (26, 0, ["266 KiB per connection"]), (125, MIB, []), (126, MIB, ["1,290 KiB per connection"])],
)
def test_a_reader_may_cost_256_kib_beyond_the_log(grown_mib: int, own_log_bytes: int, expected: list[str]):
    peak = replace(SEEN.peak, rss_bytes=(100 + grown_mib) * MIB)
    seen = replace(SEEN, peak=peak, log_of_a_reader_bytes=own_log_bytes)

    assert missed(seen, Targets(connection_kib=256)) == expected


@pytest.mark.parametrize(
    ("after_mib", "expected"), [(109, []), (112, ["memory without event logs 12% above before the attack"])]
)
def test_memory_without_event_logs_must_return_to_within_a_tenth(after_mib: int, expected: list[str]):
    before = ServerState(300 * MIB, event_log_bytes=200 * MIB)
    after = ServerState((after_mib + 50) * MIB, event_log_bytes=50 * MIB)

    assert missed(replace(SEEN, before=before, after=after), Targets(memory_returns=True)) == expected


def test_log_is_counted_by_request():
    assert missed(SEEN, Targets(log_bytes_per_request=1024)) == []
    assert missed(replace(SEEN, requests=3), Targets(log_bytes_per_request=1024)) == [
        "1,365 bytes of log per request"
    ]


def test_memory_and_connections_of_a_remote_server_are_not_judged():
    targets = Targets(connection_kib=1, memory_returns=True, log_bytes_per_request=1)
    seen = replace(SEEN, before=None, peak=None, after=None)

    assert missed(seen, targets) == []
    assert "| - | - | - | - | - |" in tables([(BY_NAME["log"], seen)])


def test_failed_answers_during_an_attack_miss_the_target():
    assert missed(replace(SEEN, victims_failed=["502", "502"])) == ["2 requests of other users failed"]


def test_outcomes_describe_how_connections_ended():
    refused = Counter({"ECONNREFUSED": 2})

    assert str(Outcomes.of([], refused)) == "0 opened; 2 refused (ECONNREFUSED)"
    reported = Outcomes(opened=5, still_open=2, closed_after_s=(0.5, 10.25), reset=1, statuses={"400": 3})
    assert str(reported).split("; ") == [
        "5 opened",
        "1 reset by the attack",
        "2 never closed by the server",
        "2 closed after 0.5 to 10.2 s",
        "responses: 3 with status 400",
    ]


def test_every_attack_has_a_unique_name():
    assert len(BY_NAME) == len(ATTACKS)


def test_tables_are_replaced_and_the_prose_is_unchanged(tmp_path):
    path = tmp_path / "report.md"
    path.write_text(f"Before\n\n{BEGIN}\nold\n{END}\n\nAfter\n")
    rows = [(ATTACKS[0], SEEN), (ATTACKS[1], replace(SEEN, under=window(gap_ms=400)))]

    for _ in range(2):
        write_report(path, rows, machine="a machine", command="python -m bench.attack")

    text = path.read_text()
    assert text.startswith("Before\n")
    assert text.endswith(f"{END}\n\nAfter\n")
    assert "old" not in text
    assert text.count("| tiny-chunks-4 | 20 / 20 / 20; 20 / 20 / 20 | 400 / 400 / 400 |") == 1
    assert "missed: gap p99 400 ms (+380 ms)" in text
