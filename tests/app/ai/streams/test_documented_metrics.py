"""The table of metrics in docs/operating/metrics.md has exactly the names and labels of `/metrics`."""

import re

from prometheus_client.parser import text_string_to_metric_families

import app.work.worker  # noqa: F401 - the table lists its metrics, too
import vendors.objects  # noqa: F401 - the table lists its metrics, too
from tests.app.ai.conftest import Talk
from tests.code.source_files import ROOT

PAGE = ROOT / "docs" / "operating" / "metrics.md"


def documented() -> list[tuple[str, set[str]]]:
    """Return the metrics of the table with their labels."""
    rows = re.findall(r"^\| (`parley_\w+`[^|]*)\|([^|]*)\|", PAGE.read_text(), re.MULTILINE)
    return [(name, set(re.findall(r"\w+", labels))) for names, labels in rows for name in re.findall(r"\w+", names)]


async def test_every_metric_is_documented_with_its_labels(talk: Talk, strategy) -> None:
    await strategy("good", "say:Here I am")
    await talk.turn("Hello", "good")
    async with talk.server.http.get(f"{talk.server.url}/metrics") as response:
        families = [one for one in text_string_to_metric_families(await response.text()) if "parley_" in one.name]
    reported = {f"{one.name}_total" if one.type == "counter" else one.name: one for one in families}

    assert sorted(name for name, _ in documented()) == sorted(reported)
    assert {
        "parley_vendor_attempts_total",
        "parley_stream_seconds",
        "parley_bulkhead_busy",
        "parley_requests_total",
    } <= {name for name, family in reported.items() if family.samples}
    for name, labels in documented():
        for sample in reported[name].samples:
            assert set(sample.labels) - {"le"} == labels, name
