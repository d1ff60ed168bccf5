"""Skips tests of documented commands on machines without curl."""

import shutil

import pytest

NEEDS_CURL = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
