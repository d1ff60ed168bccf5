"""Causes each error that the rows of an area list, and compares the answers with the route table.

An area has an `ErrorTable` and a class of cases. A case is a request to one endpoint, which succeeds unless
something is changed. The causes of this module are those of most areas; an area declares its own ones, which
replace them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from app.http.errors import InvalidApiVersion, UserNotFound, status_of
from app.http.paths import is_server_path
from app.http.rows.endpoint import Endpoint
from app.http.rows.idempotency import ERRORS as OF_IDEMPOTENCY_KEYS
from app.http.rows.row_errors import errors_of
from storage.operators.audit import COMMAND
from streams.wire.errors import (
    AppNotFound,
    AuthFailed,
    InternalError,
    InvalidSession,
    PermissionDenied,
    RateLimited,
    ServiceError,
    TooLarge,
    Unavailable,
    ValkeyError,
    ValkeyUnavailable,
)
from streams.wire.ids import new_id
from tests.app.callers import ask, token
from tests.running.config_stores import store_unchecked
from tests.running.servers import SERVER_KEY, Server

Answer = tuple[int, Any]
"""The status and the JSON, if any, of a response."""
Place = tuple[str, str]
"""A method, and a path of the route table."""
ErrorType = type[ServiceError]
Cause = Callable[[Any], Awaitable[Answer]]
"""Gets a case and returns the answer with the error."""
ELSEWHERE: dict[ErrorType, str] = {
    InternalError: "only a bug causes it",
    Unavailable: "`tests/app/ai/readers/test_large_responses.py` does not read",
}
"""Errors that one test causes for the rows of all areas, or none can."""
WITHOUT_VALKEY: dict[ErrorType, str] = dict.fromkeys(
    (ValkeyError, ValkeyUnavailable), "Valkey only counts limits here, and without it, the process counts them"
)
"""Errors that areas without their own use of Valkey do not report."""
OF_KEYS: dict[ErrorType, str] = dict.fromkeys(OF_IDEMPOTENCY_KEYS, "`tests/app/http/rows/test_idempotency.py`")
"""Errors of idempotency keys, for areas that do not cause them themselves."""


class Case(Protocol):
    """A request to one endpoint."""

    @property
    def server(self) -> Server: ...

    @property
    def row(self) -> Endpoint: ...

    @property
    def path(self) -> str: ...

    async def ask(self, *, uid: str = "", data: bytes | None = None, **headers: str) -> Answer:
        """Send the request. `uid`: another user in the path. `data`: another body. `headers`: further headers."""


async def with_a_wrong_proof(case: Case) -> Answer:
    if is_server_path(case.path):
        return await case.ask(X_Service_Auth_Token="wrong")
    signing = {"require_sign": True, "sign_keys": [{"id": "one", "key": "a key of the app"}]}
    async with changed(case.server, "auth", **signing):
        return await case.ask(X_Service_Sign="wrong")


async def without_a_key_of_auth(case: Case) -> Answer:
    """For endpoints that need no other config than that of the app's authentication."""
    server_keys = [{"kid": "development", "alg": "EdDSA"}]
    broken = {"server_keys": server_keys} if is_server_path(case.path) else {"require_sign": True}
    async with changed(case.server, "auth", **broken):
        return await case.ask()


async def too_often(case: Case, *, rate: str = "") -> Answer:
    """`rate`: the rate of a row that does not name it."""
    if is_server_path(case.path):
        rate = "server"
    elif case.row.limit is not None:
        rate = case.row.limit.rate
    async with changed(case.server, "limits", rates={rate: {"count": 1, "per_s": 3600}}):
        for _ in range(3):
            answer = await case.ask()
        return answer


COMMON: dict[ErrorType, Cause] = {
    InvalidApiVersion: lambda case: case.ask(X_Service_Api_Version="2"),
    AppNotFound: lambda case: case.ask(X_Service_App_Id="none"),
    InvalidSession: lambda case: case.ask(X_Service_Session_Token="st_ended"),
    UserNotFound: lambda case: case.ask(uid=new_id()),
    PermissionDenied: lambda case: case.ask(**token(scope="another")),
    TooLarge: lambda case: case.ask(data=b" " * 1_000_000),
    AuthFailed: with_a_wrong_proof,
    RateLimited: too_often,
}


@dataclass(frozen=True)
class Listed:
    """An error that is listed for an endpoint, and what causes it."""

    name: str
    status: int
    error_type: str | None
    """`None`: the response has no body."""
    cause: Cause | None


class ErrorTable:
    """The rows of an area, and what causes their errors."""

    def __init__(
        self,
        rows: Iterable[Endpoint],
        *,
        elsewhere: Mapping[ErrorType, str],
        impossible: Collection[tuple[Place, ErrorType]] = (),
    ) -> None:
        """`elsewhere`: errors that another test causes, or none can. `impossible`: those that a row cannot have."""
        self.rows: dict[Place, Endpoint] = {(row.method, path): row for row in rows for path in row.paths}
        self.places = sorted(self.rows)
        self._elsewhere = {**ELSEWHERE, **elsewhere}
        self._impossible = impossible
        self._causes = dict(COMMON)

    def causes(self, *errors: ErrorType) -> Callable[[Cause], Cause]:
        """Declare what causes errors. It may depend on the case."""

        def declare(cause: Cause) -> Cause:
            self._causes |= dict.fromkeys(errors, cause)
            return cause

        return declare

    def errors_at(self, place: Place) -> list[ErrorType]:
        """Return the errors that the row lists, without those that only other tests cause."""
        row, path = self.rows[place], place[1]
        # Otherwise the only limit is that of large responses, which are not read.
        is_limited = row.limit is not None or is_server_path(path) or RateLimited in row.errors
        return [
            error
            for error in dict.fromkeys(errors_of(row, path))
            if error not in self._elsewhere
            and (place, error) not in self._impossible
            and (is_limited or error is not RateLimited)
        ]

    def listed_at(self, place: Place) -> list[Listed]:
        statuses, has_body = self.rows[place].area.statuses, place[0] != "HEAD"
        return [
            Listed(
                error.__name__,
                status_of(error, statuses),
                error.error_type if has_body else None,
                self._causes.get(error),
            )
            for error in self.errors_at(place)
        ]


async def wrong_answers(listed: Iterable[Listed], prepared: Callable[[], Awaitable[Any]]) -> list[str]:
    """Cause each error and return what differs from the list. `prepared` returns the case for the next error."""
    wrong = []
    for expected in listed:
        if expected.cause is None:
            wrong.append(f"{expected.name}: nothing causes it")
            continue
        status, answer = await expected.cause(await prepared())
        error_type = answer["error"]["error_type"] if isinstance(answer, dict) and "error" in answer else None
        if (status, error_type) != (expected.status, expected.error_type):
            wrong.append(f"{expected.name}: {status} {error_type} {answer}"[:300])
    return wrong


_NEWEST = "select value from newest_configs where app_id = 'default' and kind = $1 and name = $2"
_REPLACE = """
update config_revisions set value = $3 where kind = $1 and (app_id, name, revision) in (
    select app_id, name, revision from configs where app_id = 'default' and kind = $1 and name = $2)
"""
_CHANGE = """
with next as (update config_changes set change = change + 1 returning change)
update configs set change = next.change from next where app_id = 'default' and kind = $1 and name = $2
"""


@asynccontextmanager
async def changed(server: Server, kind: str, **fields: Any) -> AsyncIterator[None]:
    """Change fields of the config `default` of a kind during the block, whether they are valid or not."""
    async with server.services.database.connection() as conn:
        before = await conn.fetchval(_NEWEST, kind, "default")
    for key in before.get("server_keys", ()):
        key["secret"] = SERVER_KEY  # What is stored does not show it.
    await store_unchecked(server.services, kind, "default", {**before, **fields})
    try:
        yield
    finally:
        configs = server.services.configs
        await configs.put("default", kind, "default", before, author="tests", origin=COMMAND)


@asynccontextmanager
async def stored_as(server: Server, kind: str, name: str, value: Any) -> AsyncIterator[None]:
    """Let a config be stored during the block as no version of this server accepts it."""

    async def store(stored: Any) -> None:
        async with server.services.database.connection() as conn:
            await conn.execute(_REPLACE, kind, name, stored)
            await conn.execute(_CHANGE, kind, name)
        await server.services.configs.refresh()

    async with server.services.database.connection() as conn:
        before = await conn.fetchval(_NEWEST, kind, name)
    await store(value)
    try:
        yield
    finally:
        await store(before)


@asynccontextmanager
async def without_tables(server: Server, *tables: str) -> AsyncIterator[None]:
    """Rename tables during the block."""
    await _execute(server, "".join(f"alter table {table} rename to {table}_away;" for table in tables))
    try:
        yield
    finally:
        await _execute(server, "".join(f"alter table {table}_away rename to {table};" for table in tables))


async def _execute(server: Server, statements: str) -> None:
    async with server.services.database.connection() as conn:
        await conn.execute(statements)


async def frozen_user(server: Server) -> tuple[str, dict[str, str]]:
    """Return a user whose deactivation is pending, and the header with the user's session."""
    uid, session = await server.login()
    headers = {"X-Service-Session-Token": session}
    status, _ = await ask(server, "POST", "/bp/user/me/deactivate", headers=headers)
    assert status == 200
    return uid, headers
