"""The page of errors: the error types of all endpoints, from the rows of the route table and the error classes."""

from collections.abc import Iterable, Iterator

from app.http.errors import ErrorType, status_of
from app.http.rows.row_errors import errors_of
from app.routes import INTERFACE
from deploy.reference.markdown import one_line, page_of, table

_ABOUT = """
The body of every error response is `{"error": {"error_type": …, "message": …, "extra"?: …}}`, whatever the status.
`message` is `<error_type>: <what is wrong>`. Programs decide by `error_type`; one type may have several reasons. If
a response has `Retry-After`, a later retry may succeed, unless `extra.retryable` is false. `backend unavailable`
and `gateway` always have both: `Retry-After` is the time that the vendor has named, or 5 seconds.

The API reference at `/docs` lists the errors of each endpoint. Errors of streams are the content of the
[event](events.md) `error`, where error types have underscores (`backend_unavailable`), and `extra.retryable` says
whether a retry may succeed.
"""
_GENERAL = ""


def errors_page() -> str:
    statuses = _statuses()
    groups: dict[str, dict[str, list[ErrorType]]] = {}
    for error in statuses:
        group, dot, _ = error.error_type.partition(".")
        groups.setdefault(group if dot else _GENERAL, {}).setdefault(error.error_type, []).append(error)
    return page_of(
        "Errors",
        _ABOUT,
        *(part for group in sorted(groups) for part in _section(group, groups[group], statuses)),
    )


def _statuses() -> dict[ErrorType, set[int]]:
    """Return the errors of all rows with their statuses. An area may change a status."""
    found: dict[ErrorType, set[int]] = {}
    for row in INTERFACE:
        for path in row.paths:
            for error in errors_of(row, path):
                found.setdefault(error, set()).add(status_of(error, row.area.statuses))
    return found


def _section(group: str, by_type: dict[str, list[ErrorType]], statuses: dict[ErrorType, set[int]]) -> Iterator[str]:
    yield f"## {f'`{group}.…`' if group else 'Errors of all areas'}"
    yield table(("error type", "status", "meaning"), _rows(by_type, statuses))


def _rows(
    by_type: dict[str, list[ErrorType]], statuses: dict[ErrorType, set[int]]
) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each meaning. Only the first row of a type contains the type."""
    for error_type in sorted(by_type):
        meanings: dict[str, set[int]] = {}
        for error in by_type[error_type]:
            meanings.setdefault(one_line(error.__doc__), set()).update(statuses[error])
        for at, meaning in enumerate(sorted(meanings, key=lambda text: (sorted(meanings[text]), text))):
            yield (f"`{error_type}`" if at == 0 else "", _listed(meanings[meaning]), meaning)


def _listed(statuses: Iterable[int]) -> str:
    return ", ".join(str(status) for status in sorted(statuses))
