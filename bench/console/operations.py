"""The operations of the admin API that return lists, and the calls with which each is measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin
from urllib.parse import quote, urlencode

from app.http.callers.caller import Access
from app.http.paths import names_in
from app.http.rows.endpoint import Endpoint
from app.routes import INTERFACE
from bench.console.values import FIXED, MISSING, Value, Values
from deploy.running import Failed

NOT_MEASURED = {
    "/admin/api/costs": "adds up all attempts of up to 30 days, for up to 2 s, and keeps the sums",
    "/admin/api/ledger/check": "reads all of the ledger, for up to 20 s",
    "/admin/api/streams/{app}/{stream_id}": "reads one running stream from the memory of its process",
}
"""Operations that return lists and have no target."""
FIRST = "first page"
_CURSOR = "before"
_FOUND = frozenset({200})
_ABSENT = frozenset({200, 404})
"""The statuses of calls that name an app, or something else, that does not exist."""


@dataclass(frozen=True, slots=True)
class Case:
    """One call. `name` says what is special about it."""

    name: str
    path: str
    answers: frozenset[int] = _FOUND
    """The statuses that it may have."""
    is_middle: bool = False
    """Whether the first page is called for its cursor, and then the page in the middle of the list is measured."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that returns a list, and the calls with which it is measured."""

    path: str
    cases: Sequence[Case] = field(default=())


def operations(values: Values) -> list[Operation]:
    """Return all operations of the route table that return lists.

    Raises `Failed` for one with a parameter for which there are no values.
    """
    return [Operation(row.path, list(cases_of(row, values))) for row in listing_rows()]


def listing_rows() -> list[Endpoint]:
    return [row for row in INTERFACE if _returns_list(row) and row.path not in NOT_MEASURED]


def _returns_list(row: Endpoint) -> bool:
    if row.method != "GET" or row.area.access is not Access.ADMIN or row.inputs.reply is None:
        return False
    fields = row.inputs.reply.model_fields.values()
    return any(get_origin(kind) is list for each in fields for kind in _options(each.annotation))


def _options(annotation: Any) -> Sequence[Any]:
    return get_args(annotation) if get_origin(annotation) in {Union, UnionType} else (annotation,)


def cases_of(row: Endpoint, values: Values) -> Iterator[Case]:
    """Yield the calls of an operation. Raises `Failed` if a parameter has no values."""
    fixed, filters = FIXED.get(row.path, {}), _filters(row, values)
    others = {name: given for name, given in filters.items() if name not in {"app", "sort", "size", "offset"}}
    for subject, path in _paths(row, values):
        yield Case(subject or FIRST, _url(path, fixed))
        if row.inputs.query is not None and _CURSOR in row.inputs.query.fields:
            yield Case(f"middle {subject}".strip(), _url(path, fixed), is_middle=True)
        for name, given in filters.items():
            for value in given:
                yield Case(
                    f"{subject} {name}={value.label}".strip(),
                    _url(path, {**fixed, name: value.value}),
                    _answers(value),
                )
        for app, (name, given) in product(filters.get("app", ())[:2], others.items()):
            for value in given:
                query = {**fixed, "app": app.value, name: value.value}
                yield Case(
                    f"{subject} app={app.label} {name}={value.label}".strip(), _url(path, query), _answers(value)
                )


def _answers(value: Value) -> frozenset[int]:
    return _ABSENT if value.value == MISSING else _FOUND


def _paths(row: Endpoint, values: Values) -> Iterator[tuple[str, str]]:
    """Yield the paths with which an operation is called, and a label of each."""
    names = names_in(row.path)
    given = [values.of_path(name) for name in names]
    if not all(given):
        raise Failed(
            f"{row.path}: there are no values for one of {', '.join(names)}: add some to bench/console/values.py"
        )
    if "order" in names:
        given = [choices[:1] for choices in given]  # The order is one of the first user.
    for chosen in product(*given):
        path = row.path
        for name, value in zip(names, chosen, strict=True):
            path = path.replace(f"{{{name}}}", quote(value.value, safe=""))
        yield " ".join(value.label for value in chosen if value.label), path


def _filters(row: Endpoint, values: Values) -> dict[str, Sequence[Value]]:
    """Return the values of each parameter of the query."""
    if row.inputs.query is None:
        return {}
    found = {}
    for name, info in row.inputs.query.model.model_fields.items():
        sent = info.alias or name
        if sent == _CURSOR or sent in FIXED.get(row.path, {}):
            continue
        found[sent] = values.of_query(row.path, sent) or _literals(info.annotation)
        if not found[sent]:
            raise Failed(f"{row.path}: there are no values for {sent}: add some to bench/console/values.py")
    return found


def _literals(annotation: Any) -> Sequence[Value]:
    """Return the values of a parameter with a fixed set of them."""
    if get_origin(annotation) is Literal:
        return [Value(value, value) for value in get_args(annotation)]
    return [value for option in _options(annotation) if option is not annotation for value in _literals(option)]


def _url(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path
