"""The page of roles: the operations of the admin API by their role, from the rows of the route table."""

import inspect
from collections.abc import Iterator

from app.http.rows.endpoint import Endpoint
from app.routes import INTERFACE
from deploy.reference.markdown import one_line, page_of, table
from storage.operators.operators import Role

_ABOUT = """
Each operation of the admin API needs a role, and each role includes the roles before it.
[Operators](../operating/operators.md) says how operators get theirs. The root token has all roles. The console
calls the same operations, so it shows what the role of its operator allows. What is said in a stream is for admins.
"""


def roles_page() -> str:
    return page_of("Roles of operators", _ABOUT, *(part for role in Role for part in _section(role)))


def _section(role: Role) -> Iterator[str]:
    rows = sorted(_row(row) for row in INTERFACE if row.area.role is role)
    yield f"## {role.value}"
    yield table(("operation", "what it does"), [(f"`{method} {path}`", text) for path, method, text in rows])


def _row(row: Endpoint) -> tuple[str, str, str]:
    """Return the path, the method and the first sentence about an operation."""
    text = one_line(inspect.getdoc(row.handler)).partition(". ")[0]
    return row.path, row.method, f"{text.removesuffix('.')}."
