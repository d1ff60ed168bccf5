"""A row of the route table, and the `Call` that its handler gets."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Concatenate, NamedTuple

from aiohttp import web

from app.http.callers import auth, operators
from app.http.callers.area import Area
from app.http.callers.caller import Access, Caller
from app.http.callers.limits import Limit
from app.http.paths import APP_ID, USER_ID, is_server_path, names_in, server_path_of
from app.http.rows.docs import NO_DOCS, Docs
from app.http.rows.inputs import Input, Inputs, InvalidRow, Source, inputs_of
from app.http.rows.replies import Reply
from app.http.wire.direct import DirectAnswer
from app.services import Services
from storage.accounts.users import User
from storage.configs.kinds.limits import Limits
from storage.operators.audit import Origin
from streams.wire.errors import ServiceError

API_VERSION = "1"
DEFAULT_APP = "default"
BODILESS = frozenset({"GET", "HEAD", "DELETE"})
"""Methods whose requests have no body."""
_READ_FIELDS = frozenset({Source.BODY, Source.PATH, Source.QUERY})
"""Sources whose fields a limit can count by."""


class Call(NamedTuple):
    """One call of an endpoint, as passed to its handler."""

    request: web.Request
    services: Services
    endpoint: "Endpoint"
    app_limits: Limits
    """The limits of the app, read once per call."""
    caller: Caller

    @property
    def app_id(self) -> str:
        return self.caller.app_id

    @property
    def request_id(self) -> str:
        return self.request[REQUEST_CONTEXT].request_id

    @property
    def origin(self) -> Origin:
        """The origin of the changes that a call of the admin API makes, for the audit log."""
        assert self.endpoint.area.role is not None, "only operators and the holder of the root token have an origin"
        return operators.origin_of(self.request, self.services, self.caller.operator, request_id=self.request_id)

    def logged_in(self, user_id: str, *, platform: str, is_new: bool) -> None:
        """Name the user that the call has logged in, and with which platform, for the access line."""
        context = self.request[REQUEST_CONTEXT]
        context.user_id, context.authenticated = user_id, True
        context.log_fields = {"login_platform": platform, "new_user": is_new}

    async def find_user(self) -> User | None:
        """Return the user of the call, or None if it was deleted meanwhile.

        The check of an S2S call has read it already. Otherwise the first use reads it.
        """
        context = self.request[REQUEST_CONTEXT]
        if context.user is None:
            context.user = await auth.find_user(self.services, app_id=self.app_id, uid=self.caller.user)
        return context.user


Handler = Callable[Concatenate[Call, ...], Awaitable[Reply]]
"""An async function whose parameters after the `Call` have the types of `app.http.rows.inputs`."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One operation of the interface. Raises `InvalidRow` if the row contradicts its handler or itself.

    The signature of the handler names its inputs and its reply: `inputs` is read from it. Its docstring is the
    summary and the description in the API reference. A row whose path is under `/bp/server/` is S2S only. A row of
    an area with `Access.WEBHOOK` is called by a platform: its path names the app as `{app_id}`, and its handler
    takes a `RawBody`. A row whose handler takes a `Transaction` accepts an `Idempotency-Key`.
    """

    method: str
    path: str
    handler: Handler
    area: Area
    s2s: str | None = None
    """The S2S path, if it is not the one that follows from `path`."""
    limit: Limit | None = None
    body_bytes: int | None = None
    """Maximum size of the body; None means the app's limit."""
    errors: tuple[type[ServiceError], ...] = ()
    """The errors of the handler. Those of the checks before it follow from the row and its area."""
    docs: Docs = NO_DOCS
    exists: Callable[[Services, str], bool] | None = None
    """Whether an app has the row: others get `PathNotFound`, whatever they send. None: all apps have it."""
    direct: DirectAnswer | None = None
    """What the row answers whatever it is asked: to a plain GET request without its handler."""
    alias_of: "Endpoint | None" = None
    """The row of which this is a deprecated path, made by `alias`."""
    inputs: Inputs = field(init=False, repr=False, compare=False)
    is_stream: bool = field(init=False, repr=False, compare=False)
    """Whether the body is followed by other input, so that the response lasts as long as this."""

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "inputs", inputs_of(self.handler, call=Call))
            object.__setattr__(self, "is_stream", self.inputs.model(Source.CHUNKED) is not None)
            self._check_role()
            self._check_paths()
            self._check_body()
            self._check_transaction()
            self.limit_field()
        except ValueError as error:
            name = getattr(self.handler, "__name__", "handler")
            raise InvalidRow(f"{self.method} {self.path} ({name}): {error}") from None

    @property
    def server_path(self) -> str | None:
        """The S2S path of a row that has a C2S path too."""
        if self.s2s is not None or not self.area.s2s or is_server_path(self.path):
            return self.s2s
        return server_path_of(self.path)

    @property
    def paths(self) -> tuple[str, ...]:
        """The C2S path, the S2S path, or both in this order."""
        return (self.path,) if self.server_path is None else (self.path, self.server_path)

    @property
    def original(self) -> "Endpoint":
        """The row itself or, for an alias, the row of which it is one."""
        return self if self.alias_of is None else self.alias_of

    def limit_field(self) -> tuple[Input, str] | None:
        """Return the input and the name of its field that `limit` counts by. Raises `InvalidRow` if none has it."""
        if self.limit is None or self.limit.by is None:
            return None
        for given in (self.inputs.body, self.inputs.path, self.inputs.query):
            if given is not None and given.source in _READ_FIELDS and self.limit.by in given.model.model_fields:
                return given, self.limit.by
        raise InvalidRow(f"limit: no Body, Path or Query has a field {self.limit.by}")

    def _check_role(self) -> None:
        """Check that the area names a role if its callers are operators, and only then."""
        if self.area.access is Access.ADMIN and self.area.role is None:
            raise InvalidRow(f"area {self.area.group} has no role for its operators")
        if self.area.access is not Access.ADMIN and self.area.role is not None:
            raise InvalidRow(f"area {self.area.group} has a role, but its access is not ADMIN")

    def _check_paths(self) -> None:
        path_input, server_path = self.inputs.path, self.server_path
        if server_path is not None and not is_server_path(server_path):
            raise InvalidRow(f"the S2S path {server_path} is not under /bp/server/")
        if any(map(is_server_path, self.paths)) and not self.area.scope:
            raise InvalidRow(f"area {self.area.group} has no scope for its S2S paths")
        fields = sorted(path_input.fields) if path_input is not None else []
        for path in self.paths:
            own = {USER_ID} if is_server_path(path) else {APP_ID} if self.area.access is Access.WEBHOOK else set()
            names = sorted(set(names_in(path)) - own)
            if names != fields:
                raise InvalidRow(f"{path} has the parameters {_listed(names)}, but Path has {_listed(fields)}")

    def _check_body(self) -> None:
        body = self.inputs.body
        if body is not None and self.method in BODILESS:
            raise InvalidRow(f"parameter {body.name}: a {self.method} request has no body")
        if self.area.access is not Access.WEBHOOK:
            return
        if body is None or body.source is not Source.RAW_BODY:
            raise InvalidRow("the handler of a webhook must take a RawBody")
        if len(self.paths) > 1 or APP_ID not in names_in(self.path):
            raise InvalidRow("a webhook has one path, which names the app as {app_id}")

    def _check_transaction(self) -> None:
        transaction, body = self.inputs.transaction, self.inputs.body
        if transaction is None:
            return
        if self.method in {"GET", "HEAD"}:
            raise InvalidRow(f"parameter {transaction.name}: a {self.method} request has no effect")
        if self.area.access in {Access.PUBLIC, Access.WEBHOOK}:
            raise InvalidRow(f"parameter {transaction.name}: a key needs a caller who is known")
        if body is not None and body.source is Source.CHUNKED:
            raise InvalidRow(f"parameter {transaction.name}: a stream cannot be stored as an answer")


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"


def alias(row: Endpoint, path: str, *, s2s: str | None = None) -> Endpoint:
    """Return a row that serves `row` at another path, which the API reference marks as deprecated."""
    return replace(row, path=path, s2s=s2s, alias_of=row.original)


@dataclass(slots=True)
class RequestContext:
    """Facts about a request for log lines, metrics and errors, filled in as they become known."""

    request_id: str
    arrived: float
    """`time.monotonic()` when the head had arrived."""
    endpoint: Endpoint | None = None
    app_id: str | None = None
    user_id: str | None = None
    user: User | None = None
    """The row of the user, once it has been read."""
    authenticated: bool = False
    """Whether the caller has proved to be a user, an app's server or an operator."""
    log_fields: Mapping[str, object] | None = None
    """Fields of the access line in addition to the common ones."""
    unsent_bytes: int = 0
    """Size of a large response while it is being sent."""
    unsent_caller: str = ""
    """The caller for whom these bytes are counted."""
    body_bytes: int = 0
    """Size of the part of a large body that has arrived."""
    body_caller: str = ""
    """The caller for whom these bytes are counted."""
    waited_s: float = 0.0
    """Time spent waiting for the client's body, or for the parameters of a stream."""


REQUEST_CONTEXT = web.RequestKey("context", RequestContext)
