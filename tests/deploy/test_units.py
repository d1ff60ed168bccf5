"""systemd does not restart a process that ended because of its settings."""

from configparser import ConfigParser

import pytest

from tests.code.source_files import ROOT

_FOLDER = ROOT / "deploy"


@pytest.mark.parametrize("name", ["parley.service", "parley-worker.service"])
def test_a_unit_restarts_after_a_failure_but_not_after_a_wrong_setting(name: str) -> None:
    unit = ConfigParser(strict=False, interpolation=None)
    unit.read(_FOLDER / name)
    assert unit["Service"]["Restart"] in {"on-failure", "always"}
    assert unit["Service"]["RestartPreventExitStatus"] == "2"
