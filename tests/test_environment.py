"""What the shell of whoever runs the tests says is not told to the servers under test."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_settings_of_the_shell_are_forgotten():
    settings = {"PARLEY_PROCESSES": "4", "PARLEY_ENV": "none", "PORT": "1", "HOST": "a machine", "S3_BUCKET": "b"}
    kept = {"PARLEY_SOAK_STREAMS": "500", "PARLEY_WRITE_TRANSCRIPTS": "1", "LIKE_PARLEY_ENV": "1"}
    named = subprocess.run(
        [sys.executable, "-c", "import os, tests.conftest; print(*os.environ)"],
        env={**os.environ, **settings, **kept},  # noqa: TID251 - it is handed on
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert not settings.keys() & set(named)
    assert kept.keys() <= set(named)
