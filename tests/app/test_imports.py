"""A process imports what it uses and no more, because needless imports delay each start and each replacement."""

import subprocess
import sys

import pytest


def imported(*arguments: str) -> set[str]:
    """Return the modules that `python <arguments>` has imported when it ends."""
    command = [sys.executable, "-X", "importtime", *arguments]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stderr.splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


@pytest.mark.parametrize(
    ("command", "needless"),
    [
        # With several processes, the command is the parent, which serves no requests.
        ("serve", {"aiohttp", "redis", "app.main"}),
        ("config", {"aiohttp", "app.services", "vendors.catalog"}),
        ("users", {"aiohttp", "app.services", "vendors.catalog", "yaml"}),
    ],
)
def test_command_imports_what_it_uses(command: str, needless: set[str]):
    modules = imported("-m", "app", command, "--help")
    assert "argparse" in modules
    assert not needless & modules


def test_the_server_imports_s3_and_tracing_only_if_configured():
    modules = imported("-c", "import app.main")
    assert "app.routes" in modules
    assert not {"aiobotocore", "botocore", "app.commands.config_files"} & modules
    # Other packages may import other modules of OpenTelemetry.
    assert not [
        name
        for name in modules
        if name.startswith(("app.observing.otlp", "opentelemetry.exporter", "opentelemetry.sdk.trace"))
    ]
