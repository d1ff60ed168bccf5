"""Finds the places in source files that read the real time."""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.code.source_files import nodes

CLOCKS = {
    *(f"datetime.{name}" for name in ("datetime.now", "datetime.utcnow", "datetime.today", "date.today")),
    *(f"time.{name}" for name in ("time", "time_ns", "gmtime", "localtime")),
    "streams.wire.codec.now_ms",
}
_WITHOUT_TIME = {"email.utils.formatdate", "email.utils.localtime", "time.asctime", "time.ctime"}
"""Functions that read the time if they are called without one."""
SQL_CLOCK = re.compile(
    r"\b(now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\s*\(|"
    r"\bcurrent_(timestamp|date|time)\b|\blocaltime(stamp)?\b",
    re.IGNORECASE,
)


def texts(path: Path) -> Iterator[str]:
    """Yield the strings of a file, including SQL, but no docstrings."""
    docstrings = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def reads_clock(found: Sequence[ast.AST]) -> bool:
    imported = dict(pair for node in found for pair in imported_names(node))
    for node in found:
        match node:
            case ast.Name() | ast.Attribute() if qualified(node, imported) in CLOCKS:
                return True
            case ast.Call(func=called, args=[] | [ast.Constant(value=None)]):
                if qualified(called, imported) in _WITHOUT_TIME:
                    return True
    return False


def imported_names(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each name that an import defines, and the qualified name of what it stands for."""
    match node:
        case ast.Import(names=aliases):
            for alias in aliases:  # `import email.utils` defines `email`.
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        case ast.ImportFrom(module=str(module), names=aliases):
            yield from ((alias.asname or alias.name, f"{module}.{alias.name}") for alias in aliases)


def qualified(node: ast.AST, imported: dict[str, str]) -> str:
    match node:
        case ast.Name(id=used_name):
            return imported.get(used_name, "")
        case ast.Attribute(value=value, attr=attribute):
            return f"{qualified(value, imported)}.{attribute}"
    return ""
