"""The rules, alerts and boards name metrics that servers and workers have, and the runbook explains each alert."""

import re
import shutil
import subprocess

import pytest
import yaml
from aiohttp import ClientSession

from app.settings import Settings
from tests.code.source_files import ROOT
from tests.deploy.commands import command
from tests.deploy.processes.stalled_readers import http
from tests.deploy.promql import DEPLOY, Expression, boards, expressions, rules_of
from tests.deploy.serving import server_env
from tests.running.ports import free_ports
from tests.running.servers import Server

__all__ = ["http"]

OPERATING = ROOT / "docs" / "operating"
PROMTOOL = shutil.which("promtool")
_GRID = 24
_TYPE = re.compile(r"^# TYPE (\w+) (\w+)$", re.MULTILINE)
_DOCUMENTED = re.compile(r"^\| ((?:`parley_\w+`(?:, )?)+) \| (.*?) \|", re.MULTILINE)
_CODE = re.compile(r"`(\w+)`")
_OF_PROMETHEUS = {"up"}
_NO_EVENTS = {"prometheus.yml"}
_EVERYWHERE = {"le", "job", "instance"}


def series_of(exposition: str) -> set[str]:
    """Return the names of all series that the metrics of an exposition have, or will have."""
    found = set()
    for name, kind in _TYPE.findall(exposition):
        found |= {f"{name}_bucket", f"{name}_count", f"{name}_sum"} if kind == "histogram" else {name}
    return found


def labels_of_metrics() -> dict[str, set[str]]:
    """Return the labels of each metric, as docs/operating/metrics.md documents them."""
    page = (OPERATING / "metrics.md").read_text()
    return {
        name: set(_CODE.findall(labels))
        for names, labels in _DOCUMENTED.findall(page)
        for name in _CODE.findall(names)
    }


async def test_each_metric_of_the_rules_and_boards_exists(
    server: Server, settings: Settings, http: ClientSession
) -> None:
    port = free_ports(2)[0]
    worker_env = server_env(settings, PARLEY_WORKER_PORT=str(port))
    async with http.get(f"{server.url}/metrics") as answer:
        series = series_of(await answer.text())
    async with command("app", "worker", **worker_env) as worker:
        await worker.event("worker.started")
        async with http.get(f"http://127.0.0.1:{port}/metrics") as answer:
            series |= series_of(await answer.text())
    recorded = {rule["record"] for rule in rules_of("rules.yml")}
    named = list(expressions())
    assert len(named) > 90
    missing = {expression.where: expression.metrics - series - recorded - _OF_PROMETHEUS for expression in named}
    assert {where: names for where, names in missing.items() if names} == {}
    assert all(expression.metrics for expression in named)


def test_each_label_of_the_rules_and_boards_exists() -> None:
    known = labels_of_metrics()
    for rule in rules_of("rules.yml"):
        known[rule["record"]] = Expression("", rule["expr"]).labels - {"le"}
    for expression in expressions():
        allowed = set(_EVERYWHERE)
        for name in expression.metrics:
            allowed |= known.get(re.sub(r"_(bucket|count|sum)$", "", name), known.get(name, set()))
        assert expression.labels <= allowed, expression


def test_the_reader_of_expressions_finds_metrics_and_labels() -> None:
    expression = Expression("", 'sum by (a, b) (rate(x_total{c=~"d|e", f!="g"}[5m])) / (y:z > 0) and absent(w)')
    assert expression.metrics == {"x_total", "y:z", "w"}
    assert expression.labels == {"a", "b", "c", "f"}


@pytest.mark.skipif(PROMTOOL is None, reason="promtool (Debian's package prometheus) is not installed")
@pytest.mark.parametrize("arguments", [("check", "config", "prometheus.yml"), ("test", "rules", "tests.yml")])
def test_promtool_accepts_the_rules_and_their_examples(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [str(PROMTOOL), *arguments], cwd=DEPLOY / "prometheus", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_an_example_that_fires_it_and_one_that_does_not() -> None:
    examples = [
        (each["alertname"], bool(each.get("exp_alerts")))
        for example in yaml.safe_load((DEPLOY / "prometheus" / "tests.yml").read_text())["tests"]
        for each in example.get("alert_rule_test", [])
    ]
    wanted = {(rule["alert"], fires) for rule in rules_of("alerts.yml") for fires in (True, False)}
    assert wanted - set(examples) == set()


def test_prometheus_asks_the_ports_that_the_units_set() -> None:
    units = "".join((DEPLOY / name).read_text() for name in ("parley.service", "parley-worker.service"))
    first, processes, worker = (
        int(re.findall(rf"PARLEY_{name}=(\d+)", units)[0]) for name in ("METRICS_PORT", "PROCESSES", "WORKER_PORT")
    )
    jobs = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    asked = {job["job_name"]: job["static_configs"][0]["targets"] for job in jobs}
    assert asked == {
        "parley": [f"127.0.0.1:{first + number}" for number in range(processes)],
        "parley-worker": [f"127.0.0.1:{worker}"],
    }


def test_the_runbook_explains_each_alert() -> None:
    page = (OPERATING / "runbook.md").read_text()
    headings = re.findall(r"^### (Parley\w+)$", page, re.MULTILINE)
    alerts = rules_of("alerts.yml")
    assert headings == [rule["alert"] for rule in alerts]
    sections = {rule["alert"]: rule["annotations"]["runbook_url"] for rule in alerts}
    base = "{{ $externalLabels.parley_docs }}/operating/runbook.md"
    assert sections == {alert: f"{base}#{alert.lower()}" for alert in sections}
    assert yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())["global"]["external_labels"]


def test_boards_fit_the_grid_and_have_their_own_names() -> None:
    found = boards()
    assert found.keys() == {"overview.json", "vendors.json", "money.json", "jobs.json", "stores.json"}
    assert len({board["uid"] for board in found.values()}) == len(found)
    for name, board in found.items():
        cells = [
            (x, y)
            for place in (panel["gridPos"] for panel in board["panels"])
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]
        assert len(cells) == len(set(cells)), f"panels of {name} overlap"
        assert max(x for x, _ in cells) < _GRID, f"{name} is too wide"
        assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_the_runbook_names_log_events_metrics_and_variables_that_exist() -> None:
    page = (OPERATING / "runbook.md").read_text()
    sources = "".join(
        path.read_text() for area in ("actors", "app", "storage", "vendors") for path in (ROOT / area).rglob("*.py")
    )
    events = set(re.findall(r"`([a-z_]+\.[a-z_]+)`", page)) - _NO_EVENTS
    assert len(events) > 20
    pages = (OPERATING / "logs.md", OPERATING / "leaderboards.md", ROOT / "docs" / "reference" / "settings.md")
    documented = "".join(page.read_text() for page in pages)
    assert {event for event in events if f'"{event}"' not in sources and f"`{event}`" not in documented} == set()
    recorded = {rule["record"] for rule in rules_of("rules.yml")}
    metrics = set(re.findall(r"\b(parley[_:]\w+(?::\w+)?)", page))
    assert metrics - labels_of_metrics().keys() - recorded == set()
    assert {name for name in re.findall(r"\bPARLEY_[A-Z_]+\b", page) if f"`{name}`" not in documented} == set()


def test_each_outage_says_what_is_seen_where_and_what_to_do() -> None:
    outages = (OPERATING / "runbook.md").read_text().partition("## Outages\n")[2].partition("## Alerts\n")[0]
    sections = outages.split("\n### ")[1:]
    titles = ["PostgreSQL", "Valkey", "A vendor", "Object store", "Mail", "Disk", "Certificate"]
    assert [section.partition("\n")[0] for section in sections] == titles
    for section in sections:
        assert "\n| users | " in section
        assert "\n| logs | " in section
        assert "/readyz`" in section
        assert "\n**What to do.** " in section
