"""The files in `deploy/` for systemd, Compose, Helm and HAProxy fit the server: commands, variables and ports."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.__main__ import _MODULES
from app.process.parent import _OVERDUE_S
from tests.code.source_files import ROOT
from tests.deploy.proxies.haproxy import CONFIG, HAPROXY

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "parley"
SYSTEMD = shutil.which("systemd-analyze")
HELM = shutil.which("helm")
_VARIABLE = re.compile(r"^\| (`[^|]+`) \|", re.MULTILINE)
_OF_OTHERS = {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD"}
_VALUE = re.compile(r"\.Values\.([A-Za-z.]+)")
_DIRECTIVE = re.compile(r"{{[^}]*}}")
GIVEN = ("--set", "existingSecret=parley", "--set", "publicUrl=https://parley.example.com")


def documented_variables() -> set[str]:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    return {name for cell in _VARIABLE.findall(page) for name in re.findall(r"`([A-Z0-9_]+)`", cell)}


def run(*command: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(SYSTEMD is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    files = sorted([*DEPLOY.glob("*.service"), *DEPLOY.glob("*.timer")])
    assert len(files) == 5
    for file in files:
        (tmp_path / file.name).write_text(file.read_text().replace("/opt/parley/.venv/bin/python", sys.executable))
    done = subprocess.run(
        [str(SYSTEMD), "verify", *(str(tmp_path / file.name) for file in files)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_units_set_documented_variables_and_run_commands_that_exist() -> None:
    for file in DEPLOY.glob("*.service"):
        text = file.read_text()
        for line in re.findall(r"^Environment=(.*)$", text, re.MULTILINE):
            assert {setting.partition("=")[0] for setting in line.split()} <= documented_variables(), file.name
        modules = re.findall(r"-m (\S+) ?(\w*)", text)
        assert modules
        for module, command in modules:
            assert command in _MODULES if module == "app" else find_spec(module), file.name


@pytest.mark.skipif(HAPROXY is None, reason="haproxy is not installed")
def test_haproxy_accepts_its_configuration() -> None:
    run(str(HAPROXY), "-c", "-q", "-f", str(CONFIG))


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_the_services_of_compose_run_commands_with_documented_variables() -> None:
    services = compose()["services"]
    for name in ("migrate", "server", "worker"):
        service = services[name]
        assert service["command"][0] in _MODULES
        assert service["environment"].keys() <= documented_variables()
        assert service["build"]["dockerfile"] == "deploy/Dockerfile"
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
    for name in ("postgres", "valkey"):
        assert set(services[name].get("environment", {})) <= _OF_OTHERS
        assert "healthcheck" in services[name]


def test_the_services_of_compose_refer_to_what_exists_and_migrate_first() -> None:
    file = compose()
    services = file["services"]
    for name, service in services.items():
        assert service.get("depends_on", {}).keys() <= services.keys(), name
        named = {volume.partition(":")[0] for volume in service.get("volumes", [])}
        assert named <= file["volumes"].keys(), name
    for name in ("server", "worker"):
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    server = services["server"]["environment"]
    processes, first = int(server["PARLEY_PROCESSES"]), int(server["PARLEY_METRICS_PORT"])
    assert services["server"]["expose"] == [str(first + number) for number in range(processes)]
    assert "noeviction" in services["valkey"]["command"]


def test_the_templates_of_the_chart_use_values_that_exist() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    templates = list((CHART / "templates").iterdir())
    assert len(templates) == 8
    for path in templates:
        for name in _VALUE.findall(path.read_text()):
            found: Any = values
            for part in name.split("."):
                assert isinstance(found, dict), f"{path.name}: {name}"
                assert part in found, f"{path.name}: {name}"
                found = found[part]


def outline(template: str) -> list[dict[str, Any]]:
    """Read a template without Helm: lines of directives are left out, and each inserted value is 0."""
    text = (
        (CHART / "templates" / template).read_text().replace('{{- include "parley.env" . | nindent 10 }}', "env:")
    )
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("{{")]
    return list(yaml.safe_load_all(_DIRECTIVE.sub("0", "\n".join(lines))))


def test_the_chart_replaces_pods_one_by_one_and_lets_them_drain() -> None:
    deployment, _, budget = outline("server.yaml")
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert (budget["kind"], budget["spec"]["maxUnavailable"]) == ("PodDisruptionBudget", 1)
    pod = deployment["spec"]["template"]["spec"]
    assert [constraint["whenUnsatisfiable"] for constraint in pod["topologySpreadConstraints"]] == [
        "ScheduleAnyway"
    ]
    (container,) = pod["containers"]
    paths = {name: container[name]["httpGet"]["path"] for name in container if name.endswith("Probe")}
    # A pod that drains is alive, but gets no requests.
    assert paths == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    (word, pause_s) = container["lifecycle"]["preStop"]["exec"]["command"]
    text = (CHART / "templates" / "server.yaml").read_text()
    after_drain_s = int(
        re.findall(r"terminationGracePeriodSeconds: {{ add .Values.server.drainTimeoutS (\d+) }}", text)[0]
    )
    assert (word, after_drain_s >= int(pause_s) + _OVERDUE_S) == ("sleep", True)


def rendered(*arguments: str) -> Iterator[dict[str, Any]]:
    text = run(str(HELM), "template", "parley", str(CHART), *GIVEN, *arguments)
    yield from (document for document in yaml.safe_load_all(text) if document)


@pytest.mark.skipif(HELM is None, reason="helm is not installed")
def test_the_chart_renders_processes_with_documented_variables() -> None:
    run(str(HELM), "lint", str(CHART), *GIVEN, "--set", "env.S3_BUCKET=files")
    objects = list(rendered("--set", "persistence.enabled=true", "--set", "ingress.enabled=true"))
    assert len(objects) == 7
    pods = {
        document["metadata"]["name"]: document["spec"]["template"]["spec"]
        for document in objects
        if "template" in document["spec"]
    }
    assert pods.keys() == {"parley-server", "parley-worker", "parley-migrate"}
    for name, pod in pods.items():
        (container,) = pod["containers"]
        assert container["args"][0] in _MODULES
        assert {variable["name"] for variable in container["env"]} <= documented_variables(), name
        assert pod["securityContext"]["runAsNonRoot"]
    ports = {port["name"]: port["containerPort"] for port in pods["parley-server"]["containers"][0]["ports"]}
    assert ports == {"http": 8080, "metrics0": 9170}


@pytest.mark.skipif(HELM is None, reason="helm is not installed")
@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [((*GIVEN,), "set env.S3_BUCKET"), (("--set", "env.S3_BUCKET=files"), "existingSecret is required")],
)
def test_the_chart_refuses_values_with_which_files_or_secrets_are_missing(
    arguments: tuple[str, ...], refusal: str
) -> None:
    done = subprocess.run(
        [str(HELM), "template", "parley", str(CHART), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert refusal in done.stderr
