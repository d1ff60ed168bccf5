"""The recipe in CONTRIBUTING: its code is that of the sample area, and its entries add that area to the code."""

import ast
import asyncio
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.code.source_files import ROOT
from tests.running.servers import Databases

SAMPLE = ROOT / "tests" / "sample"
RECIPE = (ROOT / "CONTRIBUTING.md").read_text().partition("## A new area\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```\w+ (\S+)\n(.*?)^```$", RECIPE, re.DOTALL | re.MULTILINE)
ENTRIES = re.findall(r"^\| [\w ]+ \| (above )?`(\w+)` in `(\S+\.py)` \| `(.+)` \|$", RECIPE, re.MULTILINE)
ELISION = "…\n"
COPIED = ("actors", "app", "deploy", "storage", "streams", "tests", "vendors")
LITERALS = (ast.Dict, ast.List, ast.Tuple)
WITHIN_S = 240
"""The processes need 5 s of CPU, and the machine may be busy."""


def files() -> Iterator[Path]:
    """The files of the sample area, relative to its folder."""
    yield from sorted(path.relative_to(SAMPLE) for path in SAMPLE.rglob("*.*") if path.suffix in {".py", ".sql"})


def defined_in(path: Path) -> Iterator[str]:
    for node in ast.parse((SAMPLE / path).read_text()).body:
        match node:
            case ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name


def imports_for(entry: str, target: Path) -> Iterator[str]:
    """Yield the imports of what the sample defines and an entry of the file `target` names."""
    code = re.sub(r'"[^"]*"', "", entry)
    for path in files():
        package, module = ".".join(path.parts[:-1]), path.stem
        for name in defined_in(path) if path.suffix == ".py" else ():
            if re.search(rf"\b{name}\b", code):
                yield f"from {package}.{module} import {name}\n"
        if path.parent == target.parent and re.fullmatch(module, entry):
            yield f"from {package} import {module}\n"


def with_entry(source: str, table: str, entry: str, *, above: bool) -> str:
    """Return the code with an entry at the end of a table, or above it."""
    lines = source.splitlines(keepends=True)
    [node] = [statement for statement in ast.parse(source).body if assigns(statement, table)]
    if above:
        lines.insert(node.lineno - 1, f"{entry}\n")
        return "".join(lines)
    literal = next(part for part in ast.walk(node.value) if isinstance(part, LITERALS))
    last, end = literal.end_lineno - 1, literal.end_col_offset - 1
    before = "".join(lines[:last]) + lines[last][:end]
    comma = "" if before.rstrip()[-1] in ",([{" else ", "
    return f"{before}{comma}{entry},{lines[last][end:]}" + "".join(lines[last + 1 :])


def assigns(node: ast.stmt, name: str) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=target)]) | ast.AnnAssign(target=ast.Name(id=target)):
            return target == name
    return False


def add_sample(copy: Path) -> None:
    """Copy the code into the folder `copy`, and add the sample area as the recipe says."""
    for folder in COPIED:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("sample", "browser"))
    number = max(int(path.name[:4]) for path in (copy / "storage" / "postgres" / "migrations").glob("*.sql")) + 1
    for path in files():
        target = copy / path
        if path.suffix == ".sql":
            target = target.with_name(f"{number:04}{path.name[4:]}")
        assert not target.exists(), path
        target.parent.mkdir(exist_ok=True)
        shutil.copy(SAMPLE / path, target)
    for above, table, file, entry in ENTRIES:
        target = copy / file
        source = with_entry(target.read_text(), table, entry, above=bool(above))
        imports = "".join(imports_for(entry, Path(file)))
        docstring = ast.parse(source).body[0].end_lineno
        lines = source.splitlines(keepends=True)
        target.write_text("".join([*lines[:docstring], imports, *lines[docstring:]]))
    shutil.copy(ROOT / "pyproject.toml", copy)


async def finished(*command: str | Path, cwd: Path) -> tuple[int | None, str]:
    """Return the exit code and the output of a process."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(WITHIN_S):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, output.decode()


def test_recipe_shows_each_file_of_the_sample():
    shown = {str(path) for path in files() if path.name != "__init__.py" and path.parts[0] != "tests"}
    assert {name for name, _ in BLOCKS} == shown


@pytest.mark.parametrize(("name", "block"), BLOCKS, ids=[name for name, _ in BLOCKS])
def test_code_of_the_recipe_is_that_of_the_sample(name: str, block: str):
    source, position = (SAMPLE / name).read_text(), 0
    for part in block.split(ELISION):
        found = source.find(part, position)
        assert found >= 0, part
        position = found + len(part)


@pytest.mark.timeout(WITHIN_S + 60)
async def test_area_of_the_recipe_works_in_a_copy_of_the_code_and_keeps_its_import_contracts(
    databases: Databases, tmp_path: Path
):
    add_sample(tmp_path)
    async with databases.new(seeded=True) as url:
        arguments = (url, databases.stores.redis_url, tmp_path / "data")
        (tested, output), (linted, report) = await asyncio.gather(
            finished(sys.executable, "-m", "tests.code.run_sample", *arguments, cwd=tmp_path),
            finished(Path(sys.executable).with_name("lint-imports"), "--no-cache", cwd=tmp_path),
        )
    assert linted == 0, report
    assert tested == 0, output
    tests = (SAMPLE / "tests" / "app" / "test_postcards.py").read_text().count("\nasync def test_")
    assert output.count("passed test_") == tests
