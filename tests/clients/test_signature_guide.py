"""The guide to signatures: its code runs unchanged, and its vectors are those of the clients and the server."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.http.callers import signatures
from tests.clients.cases import cases
from tests.code.source_files import ROOT

GUIDE = (ROOT / "docs" / "guides" / "signatures.md").read_text()
BLOCKS = re.findall(r"^```(sh|python|js)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
COMMANDS = {"sh": ("sh",), "python": (sys.executable,), "js": ("node",)}
ENDINGS = {"sh": "sh", "python": "py", "js": "mjs"}
_ROW = re.compile(r"^\| ([^|]+) \| `([^|`]+)` \| `([^|`]+)` \|(?: `([^`]+)`)? \| `(t=[^`]+)` \|$", re.MULTILINE)


@pytest.mark.parametrize(("language", "code"), BLOCKS, ids=[language for language, _ in BLOCKS])
def test_each_block_prints_the_documented_header(language: str, code: str, tmp_path: Path) -> None:
    if shutil.which(COMMANDS[language][0]) is None:
        pytest.skip(f"{COMMANDS[language][0]} is not installed")
    [printed] = re.findall(r"^```\n(t=.*\n)```$", GUIDE, re.MULTILINE)
    path = tmp_path / f"block.{ENDINGS[language]}"
    path.write_text(code)
    done = subprocess.run([*COMMANDS[language], str(path)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (printed, "")


def test_the_vectors_are_cases_of_the_clients_and_the_server_accepts_them() -> None:
    assert [language for language, _ in BLOCKS] == list(COMMANDS)
    rows = _ROW.findall(GUIDE)
    assert len(rows) == 3
    known = {case["name"]: case for case in cases("signatures")["requests"]}
    for name, key, request, body, header in rows:
        method, _, target = request.partition(" ")
        case = known[name]
        assert (key, method, target, body, header) == (
            case["key"], case["method"], case["target"], case["body"], case["header"],
        )  # fmt: skip
        signature = signatures.parse(header)
        assert signature is not None
        assert signature.proves([key], method=method, path_and_query=target, body=body.encode())
        assert not signature.proves([f"{key}x"], method=method, path_and_query=target, body=body.encode())
