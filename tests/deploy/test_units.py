"""The units of systemd, and the command that installs them."""

import os
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from stat import S_IMODE

import pytest

from tests.code.source_files import ROOT

_FOLDER = ROOT / "deploy"
_NEEDS_SYSUSERS = pytest.mark.skipif(
    shutil.which("systemd-sysusers") is None, reason="systemd-sysusers is not installed"
)
_URLS = {"DATABASE_URL": "postgresql://parley@db/parley", "REDIS_URL": "redis://valkey/0"}


@pytest.mark.parametrize("name", ["parley.service", "parley-worker.service"])
def test_a_unit_restarts_after_a_failure_but_not_after_a_wrong_setting(name: str) -> None:
    unit = ConfigParser(strict=False, interpolation=None)
    unit.read(_FOLDER / name)
    assert unit["Service"]["Restart"] in {"on-failure", "always"}
    assert unit["Service"]["RestartPreventExitStatus"] == "2"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone whose `.venv` has the packages of the tests."""
    folder = tmp_path / "clone"
    folder.mkdir()
    for name in ("actors", "app", "deploy", "storage", "streams", "vendors"):
        (folder / name).symlink_to(ROOT / name)
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return folder


def install(clone: Path, root: Path | None, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.defpath, **variables, **({} if root is None else {"DESTDIR": str(root)})}
    command = ["/bin/sh", str(clone / "deploy" / "install_units")]
    return subprocess.run(command, cwd="/", env=env, capture_output=True, text=True, check=False)


def environment(root: Path) -> dict[str, str]:
    lines = (root / "etc" / "parley.env").read_text().splitlines()
    return {name: value.strip("'") for name, _, value in (line.partition("=") for line in lines)}


@_NEEDS_SYSUSERS
def test_one_command_makes_the_user_the_environment_with_new_keys_and_the_units(
    clone: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    done = install(clone, root, **_URLS)
    assert done.returncode == 0, done.stderr
    assert "Fill in PARLEY_PUBLIC_URL " in done.stdout
    assert re.search("^parley:.*:/var/lib/parley:.*nologin$", (root / "etc" / "passwd").read_text(), re.MULTILINE)
    assert S_IMODE((root / "etc" / "parley.env").stat().st_mode) == 0o600
    made = environment(root)
    assert {name: made[name] for name in _URLS} == _URLS
    assert len(bytes.fromhex(made["PARLEY_MASTER_KEY"])) == 32
    units = {path.name for path in (root / "etc" / "systemd" / "system").iterdir()}
    assert units == {path.name for path in [*_FOLDER.glob("*.service"), *_FOLDER.glob("*.timer")]}


@_NEEDS_SYSUSERS
def test_the_command_keeps_keys_that_exist(clone: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    assert install(clone, root).returncode == 0
    before = environment(root)
    assert install(clone, root, **_URLS).returncode == 0
    assert environment(root) == before


@_NEEDS_SYSUSERS
@pytest.mark.parametrize(
    ("variables", "fault"),
    [
        (
            {"DATABASE_URL": "postgresql://parley:it's@db/parley"},
            "DATABASE_URL has a single quote: write it as %27",
        ),
        ({}, "there is no .venv in"),
    ],
)
def test_the_command_says_what_is_wrong_and_leaves_no_environment(
    clone: Path, tmp_path: Path, variables: dict[str, str], fault: str
) -> None:
    root = tmp_path / "root"
    if not variables:
        shutil.rmtree(clone / ".venv")
    done = install(clone, root, **variables)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"parley: {fault}" in done.stderr
    assert not (root / "etc" / "parley.env").exists()
