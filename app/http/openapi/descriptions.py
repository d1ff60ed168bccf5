"""The words of an operation, from the docstrings of its handler and of the model of its reply."""

import inspect
import re

from app.http.paths import template_of
from app.http.rows.endpoint import Endpoint
from streams.wire.model import Model

_BETWEEN_SENTENCES = re.compile(r"(?<=\.)\s+(?=[A-Z`])")
_THIRD_PERSON = {"Read": "Returns", "Get": "Returns"}
"""Verbs that say in a title what the user does. A description says what the operation does."""
_HISSING = ("s", "x", "z", "ch", "sh")


def summary_of(row: Endpoint) -> str:
    """Return the first sentence of the handler's docstring, without its full stop."""
    return _first_and_rest(row)[0].rstrip(".")


def description_of(row: Endpoint, path: str) -> str:
    """Return what an operation does, with the summary in the third person as its first sentence.

    The first paragraph has two sentences at most. The S2S form of a path and a deprecated path only name the
    operation that they repeat.
    """
    lead = f"{_third_person(summary_of(row))}."
    if row.alias_of is not None:
        return f"{lead} Deprecated path of `{row.method} {template_of(row.alias_of.path)}`."
    if path == row.server_path:
        return f"{lead} The S2S form of `{row.method} {template_of(row.path)}`."
    _, rest = _first_and_rest(row)
    second, *further = _BETWEEN_SENTENCES.split(rest, maxsplit=1)
    return "\n\n".join([f"{lead} {second}".rstrip(), *further])


def content_of(reply: type[Model]) -> str:
    """Return what a reply has: the docstring of its model."""
    return " ".join((vars(reply)["__doc__"] or "").split())


def _first_and_rest(row: Endpoint) -> tuple[str, str]:
    """Return the first sentence of the handler's docstring, and the text after it."""
    first, *rest = _BETWEEN_SENTENCES.split(inspect.getdoc(row.handler) or "", maxsplit=1)
    return " ".join(first.split()), "".join(rest)


def _third_person(summary: str) -> str:
    verb, space, rest = summary.partition(" ")
    return f"{_THIRD_PERSON.get(verb) or _with_ending(verb)}{space}{rest}"


def _with_ending(verb: str) -> str:
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}{'es' if verb.endswith(_HISSING) else 's'}"
