"""The operator's API over named configs: kinds, values, revisions, differences, rollback."""

from typing import Annotated, Any

from aiohttp import web
from pydantic import ConfigDict, Field

from app.admin.reference import DELETE, DIFF, OVERVIEW, PUT, READ, REVISIONS, ROLLBACK, VALIDATE
from app.http.caller import Access
from app.http.endpoint import Call, Endpoint, json_response
from storage.config_differences import ABSENT
from storage.config_rows import ConfigKey, Revision
from storage.kinds import KINDS
from storage.kinds.apps import APPS
from streams.wire.codec import rfc3339
from streams.wire.errors import InvalidParameter, ItemNotFound
from streams.wire.model import Model

AUTHOR_CHARACTERS = 64
RevisionNumber = Annotated[int, Field(strict=False, ge=1, lt=2**31)]


class KindRow(Model):
    model_config = ConfigDict(serialize_by_alias=True)

    kind: str
    title: str
    singleton: bool
    """Whether an app has one config of the kind, named `default`."""
    schema_: dict[str, Any] = Field(serialization_alias="schema")
    """JSON Schema of the value; secrets are `writeOnly`."""


class KindsReply(Model):
    kinds: list[KindRow]


class ListQuery(Model):
    app: str | None = None
    kind: str | None = None


class ConfigRow(Model):
    app: str
    kind: str
    name: str
    revision: int
    author: str
    comment: str
    updated_at: str
    fault: str | None = None
    """Why it cannot be used; absent where it can."""


class ListReply(Model):
    configs: list[ConfigRow]


class ReadQuery(Model):
    revision: RevisionNumber | None = None


class ConfigReply(ConfigRow):
    value: dict[str, Any]


class PutBody(Model):
    value: dict[str, Any]
    comment: str = Field(default="", max_length=500)


class ValueBody(Model):
    value: Any


class FaultRow(Model):
    path: str
    message: str


class ValidateReply(Model):
    valid: bool
    errors: list[FaultRow]


class RevisionsQuery(Model):
    before: RevisionNumber | None = None
    limit: Annotated[int, Field(strict=False, ge=1, le=1000)] = 100


class RevisionRow(Model):
    revision: int
    author: str
    comment: str
    updated_at: str
    deleted: bool


class RevisionsReply(Model):
    revisions: list[RevisionRow]


class DiffQuery(Model):
    from_: RevisionNumber = Field(alias="from")
    to: RevisionNumber


class RollbackBody(Model):
    revision: int = Field(ge=1, lt=2**31)
    comment: str = Field(default="", max_length=500)


async def kinds(call: Call) -> KindsReply:
    """List the kinds of configs."""
    return KindsReply(
        kinds=[
            KindRow(
                kind=kind.name,
                title=kind.title,
                singleton=kind.singleton,
                schema_=kind.model.model_json_schema(),
            )
            for kind in KINDS.values()
        ]
    )


async def overview(call: Call, query: ListQuery) -> ListReply:
    """List configs, of all apps or of one."""
    if query.kind is not None and query.kind not in KINDS:
        raise ItemNotFound(f"kind {query.kind} does not exist")
    found = await call.services.configs.overview(app_id=query.app, kind=query.kind)
    if not found and query.app is not None and not call.services.configs.exists(APPS, query.app):
        raise ItemNotFound(f"app {query.app} does not exist")
    return ListReply(configs=[ConfigRow(**_row(call, revision)) for revision in found])


async def read(call: Call, query: ReadQuery) -> ConfigReply:
    """Read a config, as it is or as a revision had it."""
    found = await call.services.configs.read(_key(call), revision=query.revision)
    row = _row(call, found)
    if query.revision is not None:
        row["fault"] = None
    return ConfigReply(**row, value=found.value)


async def put(call: Call, body: PutBody) -> ConfigReply:
    """Write a config."""
    revision = await call.services.configs.put(
        *_key(call), body.value, author=_author(call), comment=body.comment, if_match=_if_match(call)
    )
    return await read(call, ReadQuery(revision=revision))


async def delete(call: Call) -> None:
    """Delete a config; its revisions stay."""
    await call.services.configs.delete(_key(call), author=_author(call), if_match=_if_match(call))


async def validate(call: Call, body: ValueBody) -> ValidateReply:
    """Check a value without writing it."""
    faults = await call.services.configs.faults(_key(call), body.value)
    return ValidateReply(
        valid=not faults,
        errors=[FaultRow(path=fault.path, message=fault.message) for fault in faults],
    )


async def revisions(call: Call, query: RevisionsQuery) -> RevisionsReply:
    """List the revisions of a config, newest first."""
    found = await call.services.configs.history(_key(call), before=query.before, limit=query.limit)
    return RevisionsReply(
        revisions=[
            RevisionRow(
                revision=entry.revision,
                author=entry.author,
                comment=entry.comment,
                updated_at=rfc3339(entry.created_at),
                deleted=entry.deleted,
            )
            for entry in found
        ]
    )


async def diff(call: Call, query: DiffQuery) -> web.Response:
    """Compare two revisions.

    `before` is absent where something was added, `after` where it was removed.
    """
    found = await call.services.configs.diff(_key(call), before=query.from_, after=query.to)
    changes = []
    for difference in found:
        sides = {"before": difference.before, "after": difference.after}
        shown = {side: value for side, value in sides.items() if value is not ABSENT}
        changes.append({"path": difference.path, **shown})
    return json_response({"from": query.from_, "to": query.to, "changes": changes})


async def rollback(call: Call, body: RollbackBody) -> ConfigReply:
    """Bring back an old revision's value, as a new revision."""
    revision = await call.services.configs.rollback(
        _key(call), body.revision, author=_author(call), comment=body.comment, if_match=_if_match(call)
    )
    return await read(call, ReadQuery(revision=revision))


def _key(call: Call) -> ConfigKey:
    return ConfigKey(call.path["app"], call.path["kind"], call.path["name"])


def _row(call: Call, revision: Revision) -> dict[str, Any]:
    return {
        "app": revision.key.app_id,
        "kind": revision.key.kind,
        "name": revision.key.name,
        "revision": revision.revision,
        "author": revision.author,
        "comment": revision.comment,
        "updated_at": rfc3339(revision.created_at),
        "fault": call.services.configs.fault(revision.key),
    }


def _author(call: Call) -> str:
    author = call.request.headers.get("X-Admin-Author", "admin")
    if not 1 <= len(author) <= AUTHOR_CHARACTERS or not author.isprintable():
        raise InvalidParameter(f"X-Admin-Author must be 1 to {AUTHOR_CHARACTERS} printable characters")
    return author


def _if_match(call: Call) -> int | None:
    given = call.request.headers.get("If-Match")
    if given is None:
        return None
    number = given.strip().strip('"')
    if not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise InvalidParameter("If-Match must be the number of a revision")
    return int(number)


_ONE = "/admin/api/configs/{app}/{kind}/{name}"


def _endpoint(method: str, path: str, handler: Any, **fields: Any) -> Endpoint:
    return Endpoint(method, path, handler, access=Access.ADMIN, tag="admin", **fields)


CONFIG_ROUTES: list[Endpoint] = [
    _endpoint("GET", "/admin/api/kinds", kinds, reply=KindsReply),
    _endpoint("GET", "/admin/api/configs", overview, query=ListQuery, reply=ListReply, docs=OVERVIEW),
    _endpoint("GET", _ONE, read, query=ReadQuery, reply=ConfigReply, docs=READ),
    _endpoint("PUT", _ONE, put, body=PutBody, reply=ConfigReply, docs=PUT),
    _endpoint("DELETE", _ONE, delete, docs=DELETE),
    _endpoint("POST", f"{_ONE}/validate", validate, body=ValueBody, reply=ValidateReply, docs=VALIDATE),
    _endpoint("GET", f"{_ONE}/revisions", revisions, query=RevisionsQuery, reply=RevisionsReply, docs=REVISIONS),
    _endpoint("GET", f"{_ONE}/diff", diff, query=DiffQuery, docs=DIFF),
    _endpoint("POST", f"{_ONE}/rollback", rollback, body=RollbackBody, reply=ConfigReply, docs=ROLLBACK),
]
