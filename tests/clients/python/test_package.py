"""The package as apps get it: built, installed into an empty project, and used as its README says."""

import ast
import asyncio
import dataclasses
import re
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import parley_client
from parley_client.streams import events
from tests.clients.cases import SIGN_KEY
from tests.clients.packages import PYTHON, build_wheel, install_wheel
from tests.running.servers import Server

IMPORTED = {"aiohttp", "jwt", "yarl"}
"""aiohttp requires yarl."""
README_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the wheel and what it requires."""
    return install_wheel(wheel, tmp_path_factory.mktemp("project"))


def test_the_wheel_is_typed_and_needs_two_packages(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith("/METADATA")]
        description = archive.read(metadata).decode()
        lines = description.splitlines()
    assert "parley_client/py.typed" in names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"parley_client"}
    required = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    assert [re.split("[>=]", name)[0] for name in required] == ["aiohttp", "pyjwt[crypto]"]
    assert "Requires-Python: >=3.11" in lines
    assert "](../" not in description
    assert [name for name in names if name.endswith("LICENSE")]


def test_the_package_imports_nothing_that_it_does_not_require() -> None:
    found = set()
    for path in (PYTHON / "parley_client").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add((node.module or "").partition(".")[0])
    assert found - sys.stdlib_module_names - {"parley_client"} == IMPORTED


def test_the_readme_lists_all_events_with_their_fields() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", (PYTHON / "README.md").read_text(), re.MULTILINE)
    listed = {name: set(re.findall(r"`(\w+)`", text)) for name, text in rows}
    kinds = {kind.__name__: kind for kind in events.Event.__subclasses__()}
    assert listed.keys() == kinds.keys() <= set(parley_client.__all__)
    for name, kind in kinds.items():
        own = {field.name for field in dataclasses.fields(kind)} - {"id", "timestamp"}
        assert listed[name] <= own | {"offset_ms"}, name


async def test_the_example_of_the_readme_runs_in_an_empty_project(server: Server, strategy, python: Path) -> None:
    await strategy("scripted", "say:I am the answer")
    example, *_ = README_BLOCK.findall((PYTHON / "README.md").read_text())
    project = python.parents[2]
    (project / "main.py").write_text(example)
    running = await asyncio.create_subprocess_exec(
        python, "-W", "error", "main.py", cwd=project, env={"URL": server.url, "APP_SIGN_KEY": SIGN_KEY},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, errors = await running.communicate()
    assert (running.returncode, errors.decode()) == (0, "")
    assert re.fullmatch(r"I am the answer\nconversation [0-9a-f]{32}\n", output.decode())


async def test_the_server_is_not_in_the_project(python: Path) -> None:
    code = "import parley_client, importlib.util; print(parley_client.__file__, importlib.util.find_spec('app'))"
    running = await asyncio.create_subprocess_exec(
        python, "-c", code, cwd=python.parents[2], env={}, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await running.communicate()
    path, found = output.decode().split()
    assert Path(path).is_relative_to(python.parents[2])
    assert found == "None"
