"""The judge of a soak finds growing memory, errors in logs, and failed replacements."""

from datetime import UTC, datetime

import pytest

from bench.soak.judge import (
    Anomaly,
    Judged,
    log_anomalies,
    memory_anomalies,
)
from bench.soak.samples import Sample, Window, windows
from tests.bench.disturbances import disturbed, missed

MIB = 2**20


def window(end_s: float, children_mib: float, parent_mib: float = 60, long_lived_mib: float = 110) -> Window:
    return Window(end_s - 600, end_s, children_mib * MIB, parent_mib * MIB, long_lived_mib * MIB, 100, MIB, 20)


@pytest.mark.parametrize(
    ("found", "grown"),
    [
        ([window(600, 80), window(1200, 100), window(3600, 105)], []),
        ([window(600, 120), window(1200, 100), window(3600, 80)], []),
        ([window(600, 106), window(1200, 100), window(3600, 106)], ["memory of the children grew"]),
        ([window(600, 100), window(1200, 100), window(3600, 100, 64)], ["memory of the parent grew"]),
        ([window(600, 100), window(1200, 100), window(3600, 100, 60, 115)], []),
        (
            [window(600, 100), window(1200, 100), window(3600, 100, 60, 116)],
            ["memory of the long-lived process grew"],
        ),
        (
            [window(600, 100), window(1200, 100), window(1800, 106), window(3600, 100)],
            ["memory of the children grew"],
        ),
        ([window(600, 100), window(1200, 100)], ["memory: fewer than three windows were measured"]),
        ([], ["memory: fewer than three windows were measured"]),
        ([window(600, 100), window(1200, 0), window(3600, 100)], ["memory of the children grew"]),
    ],
)
def test_memory_growth_after_the_warm_up_is_found(found: list[Window], grown: list[str]):
    assert missed(memory_anomalies(found)) == grown


def sample(at_s: float, children_bytes: int, valkey_bytes: int = MIB) -> Sample:
    return Sample(
        at_s=at_s,
        children=2,
        children_bytes=children_bytes,
        children_rss_bytes=0,
        draining_bytes=0,
        parent_bytes=MIB,
        long_lived_bytes=110 * MIB,
        descriptors=10,
        threads=4,
        server_cpu_s=0,
        generator_cpu_s=0,
        valkey_bytes=valkey_bytes,
        postgres_connections=8,
        live=300,
        ended=0,
        events=0,
    )


def test_memory_is_measured_in_each_window_by_the_median():
    samples = [sample(at_s, 200 * MIB if at_s % 100 < 40 else 100 * MIB) for at_s in range(0, 350, 5)]
    samples[14] = sample(70, 900 * MIB, valkey_bytes=-1)

    found = windows(samples, total_s=350, every_s=100)

    assert [(one.begin_s, one.end_s) for one in found] == [(0, 100), (100, 200), (200, 300)]
    assert [one.children_bytes for one in found] == [100 * MIB] * 3
    assert found[0].valkey_bytes == MIB, "what is unknown is left out"


def test_errors_in_the_servers_log_are_found_with_their_time_and_warnings_counted():
    lines = [
        b'{"level":"info","event":"request","timestamp":"2026-11-22T10:00:01Z"}\n',
        b'{"level":"warning","event":"attempt.failed","timestamp":"2026-11-22T10:00:02Z"}\n',
        b'{"level":"error","event":"attempts.lost","timestamp":"2026-11-22T10:01:44Z"}\n',
        b'{"level":"error","event":"turn.lost","stream_id":"s1","timestamp":"2026-11-22T10:01:44Z"}\n',
        b"Traceback (most recent call last):\n",
    ]
    begun = datetime(2026, 11, 22, 10, tzinfo=UTC)

    found, counts = log_anomalies(lines, disturbed("Valkey", "kill"), begun=begun)

    assert missed(found) == [
        f"server's log: {event}" for event in ("attempts.lost", "turn.lost", "a line that is not JSON")
    ]
    assert [(one.at_s, one.during) for one in found] == [(104, ["Valkey kill"])] * 3
    assert found[1].stream_id == "s1"
    assert counts["warning attempt.failed"] == 1


@pytest.mark.parametrize(("target", "miss"), [("PostgreSQL", False), ("server", True)])
def test_a_failed_replacement_is_a_miss_unless_a_store_is_unavailable(target: str, *, miss: bool):
    line = b'{"level":"error","event":"process.not_replaced","timestamp":"2026-11-22T10:01:43Z"}\n'

    found, counts = log_anomalies([line], disturbed(target, "kill"), begun=datetime(2026, 11, 22, 10, tzinfo=UTC))

    assert missed(found) == ["server's log: process.not_replaced"] * miss
    assert counts.total() == 1


def test_a_soak_passes_if_no_verdict_has_a_miss():
    judged = Judged()
    judged.add("streams", "1 stream", [Anomaly(what="cut", at_s=1, miss=False)])
    assert judged.passed

    judged.add("memory", "much", [Anomaly(what="it grew", at_s=1)])

    assert not judged.passed
    assert [verdict.misses for verdict in judged.verdicts] == [0, 1]
