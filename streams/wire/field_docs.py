"""Descriptions of a model's fields: the string literals below them, read from source when a schema is generated."""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise


def field_docs(model: type, root: type) -> dict[str, str]:
    """The descriptions by the name of the field, those of fields inherited from below `root` included.

    Only classes at the top level of a module have any.
    """
    bases = [base for base in reversed(model.__mro__) if issubclass(base, root)]
    return {name: text for base in bases for name, text in _module_docs(base.__module__).get(base.__qualname__, ())}


@cache
def _module_docs(module: str) -> Mapping[str, list[tuple[str, str]]]:
    """Return names and descriptions of the fields of each class. A module is parsed once, not once per class."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):  # it has no source
        return {}
    return {item.name: list(_class_docs(item)) for item in tree.body if isinstance(item, ast.ClassDef)}


def _class_docs(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in pairwise(definition.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                yield name, inspect.cleandoc(words)
