"""The admin API for named configs: kinds, values, revisions, differences and rollback."""

import asyncio
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, Literal, cast

from aiohttp import web
from pydantic import BeforeValidator, ConfigDict, Field

from app.admin.apps import require_app
from app.admin.area import FOR_EDITORS, FOR_VIEWERS
from app.admin.configs.docs import DELETE, DIFF, EDIT
from app.admin.reasons import origin_with_reason
from app.http.paging import Page, PageQuery, page_of
from app.http.request.large_responses import LARGE_RESPONSE_ERRORS
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body, Path, Query
from app.http.rows.replies import json_response
from storage.configs.differences import ABSENT
from storage.configs.edits import ABSENT_CONFIG
from storage.configs.kinds import KINDS
from storage.configs.rows import ConfigFilter, ConfigKey, ConfigOrder, ListedConfig, Revision, SortField
from storage.configs.rules import Accepted, Fault
from storage.errors import (
    ConfigExists,
    ConfigKindNotFound,
    ConfigNotFound,
    RevisionNotActive,
    RevisionNotFound,
    UnknownApp,
)
from streams.wire.codec import rfc3339
from streams.wire.errors import AppNotFound, InvalidParameter
from streams.wire.lines import is_line
from streams.wire.model import Model, QueryInt

AUTHOR_CHARACTERS = 64
_ROWS_AT_ONCE = 50
RevisionNumber = Annotated[int, Field(strict=False, ge=1, lt=2**31)]
Sorting = Literal["app", "kind", "name", "author", "updated_at", "-app", "-kind", "-name", "-author", "-updated_at"]
QueryFlag = Annotated[bool, Field(strict=False), BeforeValidator(lambda value: value == "" or value)]
"""A parameter that is also true without a value: `?strict`."""


class ConfigPath(Model):
    app: str
    """An app of this server."""
    kind: str
    """A kind of config."""
    name: str
    """The name of a config; `default` if the kind allows one config per app."""

    @property
    def key(self) -> ConfigKey:
        return ConfigKey(self.app, self.kind, self.name)


class KindRow(Model):
    model_config = ConfigDict(serialize_by_alias=True)

    kind: str
    title: str
    singleton: bool
    """Whether an app has only one config of the kind, named `default`."""
    names: list[str] | None = None
    """The permitted names of its configs. Absent: any."""
    schema_: dict[str, Any] = Field(serialization_alias="schema")
    """JSON Schema of the value; secrets are `writeOnly`."""


class KindsReply(Model):
    """The config kinds, with the JSON Schema of each."""

    kinds: list[KindRow]


class FaultRow(Model):
    path: str
    message: str


class ListQuery(Model):
    app: str | None = None
    kind: str | None = None
    text: str | None = Field(default=None, max_length=200)
    """List only configs whose app, kind, name, author or comment contains this text."""
    sort: Sorting | None = None
    """The field to sort by, with `-` for descending order. Default: app, kind and name."""
    offset: QueryInt = Field(default=0, ge=0, le=1_000_000)
    """How many configs to leave out. Only with `size`."""
    size: QueryInt | None = Field(default=None, ge=1, le=1000)
    """Maximum number of configs. Default: all."""


class ConfigRow(Model):
    app: str
    kind: str
    name: str
    revision: int
    author: str
    comment: str
    updated_at: str
    fault: str | None = None
    """Why the config cannot be used; absent if it can."""
    warnings: list[FaultRow] | None = None
    """Probable mistakes, such as the name of a config that does not exist."""


class ListReply(Model):
    """The configs, without their values."""

    configs: list[ConfigRow]
    total: int | None = None
    """Number of all matching configs. Only with `size`."""


class ReadQuery(Model):
    revision: RevisionNumber | None = None


class ConfigReply(ConfigRow):
    """The config at one of its revisions."""

    value: dict[str, Any]


class StrictQuery(Model):
    strict: QueryFlag = False
    """Whether a value with warnings is refused."""


class PutBody(Model):
    value: dict[str, Any]
    comment: str = Field(default="", max_length=500)


class ValueBody(Model):
    value: Any


class ValidateReply(Model):
    """Whether the value is valid, with its errors and warnings."""

    valid: bool
    errors: list[FaultRow]
    warnings: list[FaultRow]
    """Probable mistakes in a valid value. With `strict`, these are errors."""


class RevisionRow(Model):
    revision: int
    author: str
    comment: str
    updated_at: str
    deleted: bool


class RevisionsReply(Page[int]):
    """A page of the revisions."""

    revisions: list[RevisionRow]


class DiffQuery(Model):
    from_: RevisionNumber = Field(alias="from")
    to: RevisionNumber


class RollbackBody(Model):
    revision: int = Field(ge=1, lt=2**31)
    comment: str = Field(default="", max_length=500)


async def kinds(call: Call) -> KindsReply:
    """List the config kinds."""
    return _kinds()


@cache
def _kinds() -> KindsReply:
    """Return all kinds. Their schemas are kept: they take 25 ms, in which no stream of the process continues."""
    return KindsReply(
        kinds=[
            KindRow(
                kind=kind.name,
                title=kind.title,
                singleton=kind.singleton,
                names=list(kind.names) or None,
                schema_=kind.model.model_json_schema(),
            )
            for kind in KINDS.values()
        ]
    )


async def overview(call: Call, query: Query[ListQuery]) -> ListReply:
    """List the configs of all apps or of one app."""
    if query.kind is not None and query.kind not in KINDS:
        raise ConfigKindNotFound(query.kind)
    configs, which = call.services.configs, ConfigFilter(query.app, query.kind, query.text or None)
    found = await configs.listed(which, order=_order(query.sort), offset=_offset(query), size=query.size)
    if not found and query.app is not None:
        require_app(call, query.app)
    total = None if query.size is None else await configs.count(which)
    rows = []
    for number, config in enumerate(found):
        if number % _ROWS_AT_ONCE == _ROWS_AT_ONCE - 1:
            await asyncio.sleep(0)  # The warnings of thousands of configs take half a second: streams continue.
        rows.append(ConfigRow(**_row(call, config)))
    return ListReply(configs=rows, total=total)


async def read(call: Call, path: Path[ConfigPath], query: Query[ReadQuery]) -> ConfigReply:
    """Read a config or one of its revisions."""
    config = await call.services.configs.read(path.key, revision=query.revision)
    row = _row(call, config)
    if query.revision is not None:
        row["fault"] = row["warnings"] = None
    return ConfigReply(**row, value=config.value)


async def put(call: Call, path: Path[ConfigPath], body: Body[PutBody], query: Query[StrictQuery]) -> ConfigReply:
    """Write a config.

    The reply has `warnings` about probable mistakes, such as the name of a config that does not exist.
    With `strict=true`, such a value is refused.
    """
    revision = await call.services.configs.put(
        *path.key,
        body.value,
        author=_author(call),
        origin=call.origin,
        comment=body.comment,
        if_match=_if_match(call),
        strict=query.strict,
    )
    return await _written(call, path.key, revision)


async def delete(call: Call, path: Path[ConfigPath]) -> None:
    """Delete a config.

    Its revisions are kept. The header `X-Parley-Reason` is required, and becomes the comment of the deletion.
    """
    origin = origin_with_reason(call)
    await call.services.configs.delete(
        path.key,
        author=_author(call),
        origin=origin,
        comment=origin.reason,
        if_match=_if_match(call),
    )


async def validate(
    call: Call, path: Path[ConfigPath], body: Body[ValueBody], query: Query[StrictQuery]
) -> ValidateReply:
    """Check a value without writing it."""
    judged = await call.services.configs.judge(path.key, body.value)
    errors, warnings = ([], judged.warnings) if isinstance(judged, Accepted) else (judged, ())
    if query.strict:
        errors, warnings = [*errors, *warnings], ()
    return ValidateReply(valid=not errors, errors=_fault_rows(errors), warnings=_fault_rows(warnings))


async def revisions(call: Call, path: Path[ConfigPath], query: Query[PageQuery[RevisionNumber]]) -> RevisionsReply:
    """List the revisions of a config, newest first."""
    found = await call.services.configs.history(path.key, before=query.before, limit=query.size + 1)
    entries, further = page_of(found, query.size, lambda entry: entry.revision)
    return RevisionsReply(
        next=further,
        revisions=[
            RevisionRow(
                revision=entry.revision,
                author=entry.author,
                comment=entry.comment,
                updated_at=rfc3339(entry.created_at),
                deleted=entry.deleted,
            )
            for entry in entries
        ],
    )


async def diff(call: Call, path: Path[ConfigPath], query: Query[DiffQuery]) -> web.Response:
    """Compare two revisions.

    A change has no `before` if something was added, and no `after` if something was removed.
    """
    differences = await call.services.configs.diff(path.key, before=query.from_, after=query.to)
    changes = []
    for difference in differences:
        sides = {"before": difference.before, "after": difference.after}
        present = {side: value for side, value in sides.items() if value is not ABSENT}
        changes.append({"path": difference.path, **present})
    return json_response({"from": query.from_, "to": query.to, "changes": changes})


async def rollback(
    call: Call, path: Path[ConfigPath], body: Body[RollbackBody], query: Query[StrictQuery]
) -> ConfigReply:
    """Restore the value of an old revision as a new revision.

    As with `PUT`, a value with warnings is refused with `strict=true`.
    """
    revision = await call.services.configs.rollback(
        path.key,
        body.revision,
        author=_author(call),
        origin=call.origin,
        comment=body.comment,
        if_match=_if_match(call),
        strict=query.strict,
    )
    return await _written(call, path.key, revision)


def _order(sort: Sorting | None) -> ConfigOrder:
    if sort is None:
        return ConfigOrder()
    return ConfigOrder(cast("SortField", sort.removeprefix("-")), descending=sort.startswith("-"))


def _offset(query: ListQuery) -> int:
    return 0 if query.size is None else query.offset


async def _written(call: Call, key: ConfigKey, revision: int) -> ConfigReply:
    config = await call.services.configs.read(key, revision=revision)
    return ConfigReply(**_row(call, config), value=config.value)


def _row(call: Call, revision: Revision | ListedConfig) -> dict[str, Any]:
    return {
        "app": revision.key.app_id,
        "kind": revision.key.kind,
        "name": revision.key.name,
        "revision": revision.revision,
        "author": revision.author,
        "comment": revision.comment,
        "updated_at": rfc3339(revision.created_at),
        "fault": call.services.configs.fault(revision.key),
        "warnings": _fault_rows(call.services.configs.warnings(revision.key)) or None,
    }


def _fault_rows(faults: Iterable[Fault]) -> list[FaultRow]:
    return [FaultRow(path=fault.path, message=fault.message) for fault in faults]


def _author(call: Call) -> str:
    """Return the author of a revision: the operator's name. Only holders of the root token name themselves."""
    if call.caller.operator is not None:
        return call.caller.operator.name
    author = call.request.headers.get("X-Admin-Author", "admin")
    if not 1 <= len(author) <= AUTHOR_CHARACTERS or not is_line(author):
        raise InvalidParameter(f"X-Admin-Author must be 1 to {AUTHOR_CHARACTERS} characters of one line")
    return author


def _if_match(call: Call) -> int | None:
    """Return the revision that must be active, `ABSENT_CONFIG`, or `None` if there is no condition."""
    header, absent = (call.request.headers.get(name) for name in ("If-Match", "If-None-Match"))
    if absent is not None:
        if absent.strip() != "*" or header is not None:
            raise InvalidParameter("If-None-Match must be *, without If-Match")
        return ABSENT_CONFIG
    if header is None:
        return None
    number = header.strip().strip('"')
    if not (number.isascii() and number.isdecimal() and len(number) < 10 and int(number) > 0):
        raise InvalidParameter("If-Match must be the number of a revision")
    return int(number)


_CONFIG = "/admin/api/configs/{app}/{kind}/{name}"


_EDIT_ERRORS = (ConfigKindNotFound, RevisionNotActive, ConfigExists, AppNotFound)
_READ_ERRORS = (ConfigKindNotFound, ConfigNotFound)
_DELETE_ERRORS = (*_READ_ERRORS, RevisionNotActive, ConfigExists)

CONFIG_ROUTES = [
    Endpoint("GET", "/admin/api/kinds", kinds, FOR_VIEWERS),
    Endpoint("GET", "/admin/api/configs", overview, FOR_VIEWERS, errors=(ConfigKindNotFound, UnknownApp)),
    Endpoint("GET", _CONFIG, read, FOR_VIEWERS, errors=(*_READ_ERRORS, RevisionNotFound)),
    Endpoint("PUT", _CONFIG, put, FOR_EDITORS, errors=_EDIT_ERRORS, docs=EDIT),
    Endpoint("DELETE", _CONFIG, delete, FOR_EDITORS, errors=_DELETE_ERRORS, docs=DELETE),
    Endpoint("POST", f"{_CONFIG}/validate", validate, FOR_EDITORS, errors=(ConfigKindNotFound,)),
    Endpoint("GET", f"{_CONFIG}/revisions", revisions, FOR_VIEWERS, errors=_READ_ERRORS),
    Endpoint(
        "GET", f"{_CONFIG}/diff", diff, FOR_VIEWERS, errors=(RevisionNotFound, *LARGE_RESPONSE_ERRORS), docs=DIFF
    ),
    Endpoint(
        "POST", f"{_CONFIG}/rollback", rollback, FOR_EDITORS, errors=(*_EDIT_ERRORS, RevisionNotFound), docs=EDIT
    ),
]
