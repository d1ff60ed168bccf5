"""The report of a soak is written between its marker lines and lists the misses."""

from pathlib import Path

import pytest

from bench.soak.judge import Anomaly, Judged
from bench.soak.observations import Answer, Observations, Stream
from bench.soak.report import write_report
from bench.soak.run import Plan, Run
from bench.soak.samples import Sample
from tests.calendar.clock import utc_now

pytestmark = pytest.mark.xdist_group("plots")  # One worker imports matplotlib.

MIB = 2**20


def sample(at_s: float, valkey_bytes: int) -> Sample:
    return Sample(
        at_s=at_s,
        children=2,
        children_bytes=200 * MIB,
        children_rss_bytes=0,
        draining_bytes=0,
        parent_bytes=70 * MIB,
        long_lived_bytes=110 * MIB,
        descriptors=10,
        threads=4,
        server_cpu_s=at_s / 10,
        generator_cpu_s=at_s / 20,
        valkey_bytes=valkey_bytes,
        postgres_connections=8,
        live=300,
        ended=0,
        events=0,
    )


def test_a_report_contains_verdicts_streams_refusals_memory_and_a_plot(tmp_path: Path):
    run = Run(None, Plan(120, 10, 60, 60), Observations(lambda: 120), begun=utc_now(), load_end_s=120)
    run.samples = [sample(at_s, -1 if at_s < 60 else 3 * MIB) for at_s in range(0, 120, 5)]
    run.disturbances.begin("Valkey", "kill", at_s=30).end_s = 36
    run.observations.streams = [
        Stream("text", 1, 0, outcome="end"),
        Stream("leave", 2, 0, outcome="error database", resumes=2, cut_at_s=[31]),
        Stream("leave", 2, 0),
    ]
    run.observations.answers = [
        Answer("begin", 31, 32, 503, "redis_service", "", "soak-1"),
        Answer("resume", 90, 91, 404, "item_not_found", "", "soak-2"),
    ]
    judged = Judged()
    judged.add("requests", "2", [Anomaly(what="resume: 404 item_not_found", at_s=91)])
    path = tmp_path / "report.md"
    path.write_text(
        "Before\n\n<!-- soak: written by bench.soak -->\nfigures of another run\n<!-- /soak -->\n\nAfter\n"
    )

    write_report(path, run, judged, command="python -m bench.soak")

    text = path.read_text()
    assert text.startswith("Before\n\n<!-- soak")
    assert text.endswith("<!-- /soak -->\n\nAfter\n")
    assert "another run" not in text
    assert "| requests | 2 | 1 |" in text
    assert "- 1: resume: 404 item_not_found" in text
    assert "| leave | 2 | 0 | 1 error database, 1 without a terminal event | 1 | 2 |" in text
    assert "Requests refused or failed: 1 (a store was unavailable), 1 (failed)." in text
    assert "Valkey kill at 0.5 min for 6 s" in text
    assert "| 0.7 to 1.0 | 200.0 | 70.0 | 110.0 | - | 8 | 10 |" in text
    assert "| 1.7 to 2.0 | 200.0 | 70.0 | 110.0 | 3.0 | 8 | 10 |" in text
    assert "the server 10% of a core, the generator 5%" in text
    assert (tmp_path / "plots/soak.png").read_bytes().startswith(b"\x89PNG")


def test_each_miss_is_printed_once_with_its_ids(capsys: pytest.CaptureFixture[str]):
    run = Run(None, Plan(120, 10, 60, 60), Observations(lambda: 50), begun=utc_now())
    run.disturbances.begin("server", "replace", at_s=30).end_s = 36
    run.observations.answers.append(Answer("begin", 31, 32, 503, "backend_unavailable", "", "soak-1"))
    run.report_new_misses()
    run.observations.streams.append(Stream("text", 1, 40, end_s=45, stream_id="s2", request_id="soak-2"))
    run.observations.streams.append(Stream("text", 1, 40, end_s=45, outcome="end"))

    run.report_new_misses()
    run.report_new_misses()

    assert [line.partition(" ")[2] for line in capsys.readouterr().out.splitlines()] == [
        "missed at 32.0 s: begin: 503 backend_unavailable; stream -, request soak-1",
        "missed at 45.0 s: no terminal event; stream s2, request soak-2",
    ]
