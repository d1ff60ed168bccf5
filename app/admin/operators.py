"""Admin API of operators: list, add, change and remove operators, rotate their tokens, and identify the caller."""

from typing import Literal

from app.admin.area import FOR_ADMINS, FOR_VIEWERS
from app.admin.reasons import origin_with_reason
from app.http.callers.console_sessions import csrf_token, session_token
from app.http.paging import Page, PageQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body, Path, Query
from app.http.rows.replies import Empty
from storage.operators import operators
from storage.operators.audit import ROOT
from storage.operators.operators import Operator, OperatorExists, OperatorNotFound, Role
from streams.wire.codec import rfc3339
from streams.wire.model import Model, Moment

RoleName = Literal["viewer", "editor", "admin"]


class OperatorPath(Model):
    operator: str
    """The name of an operator."""


class OperatorRow(Model):
    operator_id: str
    name: str
    role: RoleName
    created_at: str
    expires_at: str | None = None
    """Absent if the token does not expire."""
    last_used_at: str | None = None
    """When the token was last used, up to a minute early. Absent if it was never used."""
    expired: bool


class OperatorsReply(Page[str]):
    """A page of the operators."""

    operators: list[OperatorRow]


class TokenReply(Model):
    """The operator and its token."""

    operator: OperatorRow
    token: str
    """The token of the operator. It is not stored and cannot be read again."""


class OperatorReply(Model):
    """The operator."""

    operator: OperatorRow


class SelfReply(Model):
    """The calling operator and its role."""

    actor: str
    """`root`, or the name of the operator."""
    role: RoleName
    operator: OperatorRow | None = None
    """Absent for the root token."""
    csrf: str | None = None
    """The value of `X-Parley-Csrf` for calls that change something. Only for a session of the console."""


class AddBody(Model):
    name: str
    """1 to 64 of `A-Z a-z 0-9 . _ @ + -`. The audit log and the revisions of configs show it."""
    role: RoleName
    expires_at: Moment | None = None
    """When the token expires; absent: never."""


class ChangeBody(Model):
    role: RoleName
    expires_at: Moment | None = None
    """When the token expires; `null`: never; absent: unchanged."""


class RotateBody(Model):
    expires_at: Moment | None = None
    """When the new token expires; absent: as the old one."""


async def identify_self(call: Call) -> SelfReply:
    """Read the calling operator and its role."""
    operator = call.caller.operator
    if operator is None:
        return SelfReply(actor=ROOT, role=Role.ADMIN.value)
    session = session_token(call.request, call.services.settings)
    return SelfReply(
        actor=operator.name,
        role=operator.role.value,
        operator=_row(operator),
        csrf=None if session is None else csrf_token(session),
    )


async def list_operators(call: Call, query: Query[PageQuery[str]]) -> OperatorsReply:
    """List the operators, newest first."""
    async with call.services.database.connection() as conn:
        found = await operators.page_of_operators(conn, before_id=query.before, limit=query.size + 1)
    page, further = page_of(found, query.size, lambda operator: operator.operator_id)
    return OperatorsReply(next=further, operators=[_row(operator) for operator in page])


async def add_operator(call: Call, body: Body[AddBody]) -> TokenReply:
    """Add an operator.

    The reply has its token. The header `X-Parley-Reason` is required.
    """
    origin = origin_with_reason(call)
    async with call.services.database.transaction() as conn:
        added, token = await operators.add(
            conn, body.name, role=Role(body.role), expires_at=body.expires_at, origin=origin
        )
    return TokenReply(operator=_row(added), token=token)


async def change_operator(call: Call, path: Path[OperatorPath], body: Body[ChangeBody]) -> OperatorReply:
    """Change the role and the expiry of an operator.

    Its token stays the same. Another role ends its sessions in the console. The header `X-Parley-Reason` is
    required.
    """
    origin = origin_with_reason(call)
    async with call.services.database.transaction() as conn:
        current = await operators.lock(conn, path.operator)
        expires_at = body.expires_at if "expires_at" in body.model_fields_set else current.expires_at
        changed = await operators.change(conn, current, role=Role(body.role), expires_at=expires_at, origin=origin)
    return OperatorReply(operator=_row(changed))


async def rotate_token(call: Call, path: Path[OperatorPath], body: Body[RotateBody]) -> TokenReply:
    """Replace the token of an operator.

    Once the response arrives, the old token is invalid and the sessions in the console have ended. The reply has
    the new token, with which the operator sets up an authenticator again. The header `X-Parley-Reason` is required.
    """
    origin = origin_with_reason(call)
    async with call.services.database.transaction() as conn:
        current = await operators.lock(conn, path.operator)
        rotated, token = await operators.rotate(conn, current, expires_at=body.expires_at, origin=origin)
    return TokenReply(operator=_row(rotated), token=token)


async def remove_operator(call: Call, path: Path[OperatorPath]) -> Empty:
    """Remove an operator.

    Its token is invalid once the response arrives. The header `X-Parley-Reason` is required.
    """
    origin = origin_with_reason(call)
    async with call.services.database.transaction() as conn:
        await operators.remove(conn, await operators.lock(conn, path.operator), origin=origin)
    return Empty()


def _row(operator: Operator) -> OperatorRow:
    return OperatorRow(
        operator_id=operator.operator_id,
        name=operator.name,
        role=operator.role.value,
        created_at=rfc3339(operator.created_at),
        expires_at=None if operator.expires_at is None else rfc3339(operator.expires_at),
        last_used_at=None if operator.last_used_at is None else rfc3339(operator.last_used_at),
        expired=operator.expired,
    )


_OPERATOR = "/admin/api/operators/{operator}"

OPERATOR_ROUTES = [
    Endpoint("GET", "/admin/api/self", identify_self, FOR_VIEWERS),
    Endpoint("GET", "/admin/api/operators", list_operators, FOR_ADMINS),
    Endpoint("POST", "/admin/api/operators", add_operator, FOR_ADMINS, errors=(OperatorExists,)),
    Endpoint("PUT", _OPERATOR, change_operator, FOR_ADMINS, errors=(OperatorNotFound,)),
    Endpoint("POST", f"{_OPERATOR}/rotate", rotate_token, FOR_ADMINS, errors=(OperatorNotFound,)),
    Endpoint("DELETE", _OPERATOR, remove_operator, FOR_ADMINS, errors=(OperatorNotFound,)),
]
