"""Rules of the house that a linter does not know: lengths, and who makes tasks, JSON, error types and responses."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("app", "actors", "streams", "vendors", "storage")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
OTHER_FILES = sorted(path for folder in ("tests", "bench", "deploy") for path in (ROOT / folder).rglob("*.py"))

FILE_LINES = 400
FUNCTION_LINES = 80
TASK_MAKERS = {
    "streams/tasks.py",
    "actors/supervisor.py",
    "app/process/parent.py",  # the parent of the serving processes: one task group, no streams
}
JSON_MAKERS = {"streams/wire/codec.py"}
OTHER_PROTOCOLS = ("vendors/local/", "vendors/sandbox/")
"""Processes of their own, that answer in the words of vendors."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), name(path))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each function and its lines, without decorators and docstring."""
    for node in ast.walk(tree(path)):
        if isinstance(node, Function) and node.end_lineno is not None:
            lines = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node) is not None:
                docstring = node.body[0]
                lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
            yield f"{name(path)}:{node.lineno} {node.name}", lines


def percentile(numbers: list[int], percent: int) -> int:
    return sorted(numbers)[min(len(numbers) - 1, len(numbers) * percent // 100)]


def test_there_is_something_to_look_at():
    assert {path.relative_to(ROOT).parts[0] for path in FILES} == set(PACKAGES)


def test_no_file_is_too_long_to_read():
    lengths = {name(path): len(path.read_text().splitlines()) for path in FILES}
    others = {name(path): len(path.read_text().splitlines()) for path in OTHER_FILES}

    assert {file: lines for file, lines in (lengths | others).items() if lines > FILE_LINES} == {}
    written = [lines for lines in lengths.values() if lines]
    assert percentile(written, 50) <= 120
    assert percentile(written, 90) <= 300


def test_no_function_is_too_long_to_read():
    lengths = dict(function for path in FILES for function in functions(path))

    assert {function: lines for function, lines in lengths.items() if lines > FUNCTION_LINES} == {}
    assert percentile(list(lengths.values()), 90) <= 22
    assert percentile(list(lengths.values()), 99) <= 60


def names_used(path: Path) -> set[str]:
    used = set()
    for node in ast.walk(tree(path)):
        match node:
            case ast.Attribute(attr=used_name) | ast.Name(id=used_name):
                used.add(used_name)
            case ast.alias(name=used_name):
                used.add(used_name.rpartition(".")[2])
    return used


def test_only_owners_make_tasks():
    makers = {"create_task", "ensure_future", "TaskGroup", "run_coroutine_threadsafe"}

    assert {name(path) for path in FILES if names_used(path) & makers} == TASK_MAKERS


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        match node:
            case ast.Import(names=aliases):
                yield from (alias.name for alias in aliases)
            case ast.ImportFrom(module=str(module)):
                yield module


def test_only_the_wire_makes_json():
    makers = {"orjson", "json", "ujson", "simplejson", "msgspec"}

    found = {name(path) for path in FILES if {module.partition(".")[0] for module in imports(path)} & makers}

    assert found == JSON_MAKERS


def test_each_error_type_is_named_once_and_by_a_class():
    files = [path for path in FILES if not name(path).startswith(OTHER_PROTOCOLS)]
    nodes = [node for path in files for node in ast.walk(tree(path))]

    named = Counter(
        node.value.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        if [getattr(target, "id", "") for target in node.targets] == ["error_type"]
    )
    assert {"internal", "backend unavailable", "redis_service", "all_strategies_failed"} <= named.keys()
    assert [error_type for error_type, count in named.items() if count > 1] == []
    assert not [
        node
        for node in nodes
        if isinstance(node, ast.keyword) and node.arg == "error_type" and isinstance(node.value, ast.Constant)
    ]


def test_only_the_http_layer_makes_error_responses():
    used = {name(path) for path in FILES if "error_response" in names_used(path)}

    assert {path.rpartition("/")[0] for path in used} == {"app/http"}
