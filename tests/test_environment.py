"""Variables of the caller's shell do not reach the servers under test."""

import os
import runpy
from pathlib import Path

import pytest


def test_settings_of_the_shell_are_removed(monkeypatch: pytest.MonkeyPatch):
    settings = {"PARLEY_PROCESSES": "4", "PARLEY_ENV": "none", "PORT": "1", "HOST": "a machine", "S3_BUCKET": "b"}
    kept = {"PARLEY_SOAK_STREAMS": "500", "PARLEY_WRITE_TRANSCRIPTS": "1", "LIKE_PARLEY_ENV": "1"}
    for name, value in {**settings, **kept}.items():
        monkeypatch.setenv(name, value)

    runpy.run_path(str(Path(__file__).with_name("conftest.py")))

    left = os.environ.keys()  # noqa: TID251 - what the processes of the tests inherit
    assert not settings.keys() & left
    assert kept.keys() <= left
