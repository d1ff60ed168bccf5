"""Admin API of the audit log."""

from typing import Any

from pydantic import Field

from app.admin.area import FOR_VIEWERS
from app.http.paging import Page, SortedQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Query
from storage.configs.kinds import KINDS
from storage.operators import audit
from storage.operators.audit import SUBJECTS, Action, AuditEntry, Filters
from storage.operators.operators import Role
from streams.wire.codec import rfc3339
from streams.wire.errors import InvalidParameter, listed
from streams.wire.model import Model, Moment, QueryInt

_SUBJECTS = f"one of {', '.join(sorted(SUBJECTS))}"


class AuditQuery(SortedQuery[QueryInt]):
    app: str | None = None
    """List only changes of this app."""
    actor: str | None = None
    """List only changes by this actor: `root`, `command`, or the name or the id of an operator."""
    action: Action | None = None
    """List only these changes."""
    kind: str | None = None
    """List only changes of subjects of this kind: a config kind, `job`, `operator`, `suppression`,
    `user`, `webhook` or `withdrawal`."""
    name: str | None = None
    """List only changes of subjects with this name."""
    since: Moment | None = Field(default=None, alias="from")
    """List only changes at or after this time."""
    until: Moment | None = Field(default=None, alias="to")
    """List only changes before this time."""


class AuditRow(Model):
    audit_id: int
    at: str
    actor: str
    """`root` (the root token), `command` (the command line), or the name that the operator had at the time."""
    operator_id: str | None = None
    """Absent unless an operator made the change."""
    action: str
    """Such as `config.put`."""
    app: str | None = None
    """Absent if the change concerns the whole deployment."""
    kind: str
    name: str
    before: dict[str, Any] | None = None
    """The subject before the change, with masked secrets. Absent if it did not exist.

    A field of more than 16 KiB is replaced by `{"omitted_bytes": …}`.
    """
    after: dict[str, Any] | None = None
    """The subject after the change. Absent if it does not exist any more."""
    reason: str
    """`X-Parley-Reason`, or the comment of a config's revision, or empty."""
    request_id: str
    """Empty for commands."""
    address: str
    """The client's address. Empty for commands."""


class AuditReply(Page[int]):
    """A page of the changes."""

    changes: list[AuditRow]


async def list_audit(call: Call, query: Query[AuditQuery]) -> AuditReply:
    """List the changes by operators and commands.

    The newest comes first. Changes of operators and their tokens are listed for the role `admin` only.
    """
    if query.kind is not None and query.kind not in {*KINDS, *SUBJECTS}:
        raise InvalidParameter(f"kind {listed([query.kind])} is neither a config kind nor {_SUBJECTS}")
    operator = call.caller.operator
    is_admin = operator is None or operator.role.includes(Role.ADMIN)
    filters = Filters(
        app_id=query.app,
        actor=query.actor,
        action=query.action,
        kind=query.kind,
        name=query.name,
        since=query.since,
        until=query.until,
        of_operators=None if is_admin else False,
    )
    found = await call.services.reads.read(
        lambda conn: audit.entries(
            conn, filters, oldest_first=query.oldest_first, before_id=query.before, limit=query.size + 1
        )
    )
    entries, further = page_of(found, query.size, lambda entry: entry.audit_id)
    return AuditReply(next=further, changes=[audit_row(entry) for entry in entries])


def audit_row(entry: AuditEntry) -> AuditRow:
    origin, subject = entry.origin, entry.subject
    return AuditRow(
        audit_id=entry.audit_id,
        at=rfc3339(entry.changed_at),
        actor=origin.actor,
        operator_id=origin.operator_id,
        action=entry.action,
        app=subject.app_id,
        kind=subject.kind,
        name=subject.name,
        before=entry.before,
        after=entry.after,
        reason=origin.reason,
        request_id=origin.request_id,
        address=origin.address,
    )


AUDIT_ROUTES = [Endpoint("GET", "/admin/api/audit", list_audit, FOR_VIEWERS)]
