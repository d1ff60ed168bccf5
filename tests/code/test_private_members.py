"""Private members of libraries are used in few modules, whose assumptions `tests/libraries/` checks."""

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from tests.code.source_files import FILES, PACKAGES, name, nodes, tree

pytestmark = pytest.mark.xdist_group("architecture")  # One worker parses all files.

USERS = {
    "app/http/wire/aiohttp_server.py",  # aiohttp's server
    "streams/sse.py",  # aiohttp's responses and aiohttp-sse
    "storage/valkey/pipeline.py",  # redis-py
}
DOCUMENTED = {"_replace", "_asdict", "_fields", "_exit"}
"""Members of named tuples and of `os`."""
OWN = {"self", "cls"}


def module(path: Path) -> str:
    return name(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def is_private(member: str) -> bool:
    return member.startswith("_") and not member.startswith("__")


def imports(code: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the dotted names that are imported."""
    for node in code:
        match node:
            case ast.Import(names=aliases):
                yield from (alias.name for alias in aliases)
            case ast.ImportFrom(module=str(source), names=aliases):
                yield from (f"{source}.{alias.name}" for alias in aliases)


def members_of_others(code: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the members that are used of objects other than `self`, by their name or as a text."""
    for node in code:
        match node:
            case ast.Attribute(value=ast.Name(id=owner)) if owner in OWN:
                pass
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"))):
                pass
            case ast.Attribute(attr=member):
                yield member
            case ast.Call(func=ast.Name(id="getattr" | "setattr" | "hasattr" | "delattr"), args=[_, text, *_]):
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    yield text.value


def own_members(code: ast.AST) -> Iterator[str]:
    """Yield the members of `self` that are used or defined, and the functions that are defined."""
    for node in ast.walk(code):
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=member) if owner in OWN:
                yield member
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=member):
                yield member
            case ast.FunctionDef(name=member) | ast.AsyncFunctionDef(name=member):
                yield member


@cache
def source(kind: type) -> ast.AST:
    """Return the definition of a class, or nothing if it is compiled."""
    try:
        path = Path(inspect.getfile(kind))
    except (OSError, TypeError):
        return ast.Pass()
    found = tree(path).body if path.suffix == ".py" else ()
    return next(
        (node for node in found if isinstance(node, ast.ClassDef) and node.name == kind.__name__), ast.Pass()
    )


@cache
def private_members(kind: type) -> frozenset[str]:
    return frozenset(filter(is_private, {*vars(kind), *own_members(source(kind))}))


def inherited(kind: type) -> set[str]:
    """Return the private members that `kind` has from classes of libraries."""
    packages = {base: base.__module__.partition(".")[0] for base in kind.__mro__}
    libraries = [base for base, package in packages.items() if package not in {*PACKAGES, *sys.stdlib_module_names}]
    return set().union(*map(private_members, libraries))


@cache
def members_from_libraries(path: Path) -> list[str]:
    """Return the private members of libraries that the classes of a module use of themselves.

    Only modules that define a class with a base are imported.
    """
    if not any(isinstance(node, ast.ClassDef) and node.bases for node in tree(path).body):
        return []
    kinds = vars(import_module(module(path))).values()
    return [
        f"{kind.__name__}.{member}"
        for kind in kinds
        if inspect.isclass(kind) and kind.__module__ == module(path) and (private := inherited(kind))
        for member in private & set(own_members(source(kind)))
    ]


@pytest.mark.parametrize("find", [imports, members_of_others])
def test_private_members_of_others_are_used_in_few_modules(find) -> None:
    found = {
        f"{name(path)}: {used}"
        for path in FILES
        if name(path) not in USERS
        for used in find(nodes(path))
        if any(is_private(part) and part not in DOCUMENTED for part in used.split("."))
    }

    assert found == set(), "move what needs private members of a library to the module that is for it, with a test"


def test_private_members_that_a_class_inherits_from_a_library_are_used_in_few_modules() -> None:
    found = {
        f"{name(path)}: {used}"
        for path in FILES
        if name(path) not in USERS
        for used in members_from_libraries(path)
    }

    assert found == set(), "move what needs private members of a library to the module that is for it, with a test"


def test_each_listed_module_uses_private_members() -> None:
    found = {
        name(path)
        for path in FILES
        if members_from_libraries(path) or any(map(is_private, members_of_others(nodes(path))))
    }

    assert found >= USERS
