"""Each path of predictions answers with each error that its row lists, and with those that the interface lists."""

import io
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from actors.strategies import StrategyNotFound
from app.http.errors import DeactivationPending, InvalidApiVersion, UserNotFound, status_of
from app.http.idempotency import ERRORS as OF_KEYS
from app.http.paths import is_server_path
from app.http.row_errors import errors_of
from app.predictions.routes import PREDICTION_ROUTES
from app.services import open_services
from storage.objects.contract import ObjectsError, ObjectsUnavailable
from storage.predictions import PredictionNotFound
from storage.quotas import QuotaUsed
from streams.wire.errors import (
    AppNotFound,
    AuthFailed,
    BackendUnavailable,
    ConfigInvalid,
    DatabaseError,
    DatabaseUnavailable,
    InternalError,
    InvalidParameter,
    InvalidSession,
    PermissionDenied,
    RateLimited,
    ServiceError,
    TooLarge,
    Unavailable,
    ValkeyError,
    ValkeyUnavailable,
)
from tests.app.callers import ask, token
from tests.app.predictions.hosts import VERSION, Studio
from tests.app.valkey_proxy import ValkeyProxy, valkey_proxy_to
from tests.config_stores import store_unchecked
from tests.servers import SERVER_KEY, Databases, listening_socket, running_server, settings_of
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import listening

PLACES = [(row, path) for row in PREDICTION_ROUTES for path in row.paths]
ELSEWHERE: dict[type[ServiceError], str] = {
    InternalError: "only a bug causes it",
    Unavailable: "`tests/app/ai/test_large_responses.py` does not read",
    ValkeyError: "no endpoint of this area uses Valkey but for limits, which are then counted in the process",
    ValkeyUnavailable: "the same",
    ObjectsUnavailable: "`tests/storage/test_objects_s3.py` stops the store",
    **dict.fromkeys(OF_KEYS, "`tests/app/test_idempotency.py`"),
}
SOCKET = ".s.PGSQL.5432"
PNG = b"\x89PNG\r\n\x1a\n"
ASYNC, SYNC, UPLOAD = "async/modelhub", "ai/prediction", "ai/upload"


@dataclass(frozen=True)
class Case:
    """A path, and a user of a server whose database can be stopped."""

    studio: Studio
    database: ValkeyProxy
    method: str = "GET"
    path: str = ""
    known: str = ""
    """A prediction of the user."""
    body: dict[str, Any] = field(default_factory=dict)

    async def ask(self, *, data: bytes | None = None, uid: str = "", known: str = "", **headers: str) -> Any:
        """Send a request that succeeds, unless something is changed."""
        studio, of_server = self.studio, is_server_path(self.path)
        sent = studio.as_server() if of_server else {"X-Service-Session-Token": studio.session}
        headers = {**sent, **{name.replace("_", "-"): text for name, text in headers.items()}}
        path = self.path.format(user_id=uid or studio.uid, prediction_id=known or self.known)
        given: dict[str, Any] = {"data": io.BytesIO(PNG if data is None else data)}
        if self.method == "GET":
            given = {} if data is None else given
        elif data is None and UPLOAD not in path:
            given = {"json": self.body}
        return await ask(studio.server, self.method, path, headers=headers, **given)

    def with_body(self, **changed: Any) -> "Case":
        return replace(self, body=self.body | changed)

    async def put(self, kind: str, name: str, value: dict[str, Any]) -> None:
        await store_unchecked(self.studio.server.services, kind, name, value)


Cause = Callable[[Case], Awaitable[tuple[int, Any]]]
CAUSES: dict[type[ServiceError], Cause] = {
    InvalidApiVersion: lambda case: case.ask(X_Service_Api_Version="2"),
    AppNotFound: lambda case: case.ask(X_Service_App_Id="none"),
    InvalidSession: lambda case: case.ask(X_Service_Session_Token="st_ended"),
    UserNotFound: lambda case: case.ask(uid="nobody"),
    PermissionDenied: lambda case: case.ask(**token(scope="assets")),
    StrategyNotFound: lambda case: case.with_body(strategy="none").ask(),
    PredictionNotFound: lambda case: case.ask(known="0" * 32),
    TooLarge: lambda case: case.ask(data=b" " * (21 * 1024 * 1024 if UPLOAD in case.path else 400_000)),
}


def causes(error: type[ServiceError]) -> Callable[[Cause], Cause]:
    def declare(cause: Cause) -> Cause:
        CAUSES[error] = cause
        return cause

    return declare


@causes(InvalidParameter)
async def with_a_body_that_is_none(case: Case) -> tuple[int, Any]:
    if case.method == "GET":
        return await case.ask(Content_Encoding="gzip")
    return await case.ask(data=b"{}")


@causes(AuthFailed)
async def with_a_wrong_proof(case: Case) -> tuple[int, Any]:
    if is_server_path(case.path):
        return await case.ask(X_Service_Auth_Token="wrong")
    auth = {"require_sign": True, "sign_keys": [{"id": "one", "key": "a key of the app"}]}
    async with changed(case, "auth", auth):
        return await case.ask(X_Service_Sign="wrong")


@causes(ConfigInvalid)
async def of_a_strategy_without_its_account(case: Case) -> tuple[int, Any]:
    """Or, of an endpoint without a strategy, without a key that the app's authentication needs."""
    if case.body:
        await case.put("predictions", "broken", {"account": "missing"})
        return await case.with_body(strategy="broken").ask()
    broken = {"server_keys": [{"kid": "development", "alg": "EdDSA"}]}
    async with changed(case, "auth", broken if is_server_path(case.path) else {"require_sign": True}):
        return await case.ask()


@causes(DeactivationPending)
async def of_a_frozen_user(case: Case) -> tuple[int, Any]:
    other = replace(case.studio)
    other.uid, other.session = await case.studio.server.login()
    assert (await other.call("POST", "/bp/user/me/deactivate"))[0] == 200
    return await replace(case, studio=other).ask()


@causes(DatabaseError)
async def without_its_tables(case: Case) -> tuple[int, Any]:
    for table in ("predictions", "task_files"):
        await execute(case, f"alter table {table} rename to {table}_away")
    try:
        return await case.ask()
    finally:
        for table in ("predictions", "task_files"):
            await execute(case, f"alter table {table}_away rename to {table}")


@causes(DatabaseUnavailable)
async def without_the_database(case: Case) -> tuple[int, Any]:
    await case.database.stop()
    try:
        return await case.ask()
    finally:
        await case.database.start()

        async def works() -> bool:
            return (await case.ask())[0] == 200

        await until(works)


@causes(RateLimited)
async def too_often(case: Case) -> tuple[int, Any]:
    rate = {"count": 1, "per_s": 3600}
    async with changed(case, "limits", {"rates": {"prediction": rate, "server": rate}}):
        for _ in range(3):
            found = await case.ask()
        return found


@causes(QuotaUsed)
async def without_units(case: Case) -> tuple[int, Any]:
    await case.put("predictions", "paid", {"account": "host", "quota": {"asset": "pearls"}})
    return await case.with_body(strategy="paid").ask()


@causes(BackendUnavailable)
async def while_the_host_fails(case: Case) -> tuple[int, Any]:
    await case.studio.set_up(key=key_of(fault="server_error"), quota=None)
    try:
        return await case.ask()
    finally:
        await case.studio.set_up(quota=None)


@causes(ObjectsError)
async def without_the_folder_of_files(case: Case) -> tuple[int, Any]:
    folder = case.studio.server.services.settings.data_dir / "objects"
    shutil.move(folder, away := folder.with_name("away"))
    folder.write_bytes(b"")
    try:
        return await case.with_body(input={"files": ["a.png"]}).ask()
    finally:
        folder.unlink()
        shutil.move(away, folder)


async def execute(case: Case, statement: str, *values: Any) -> None:
    async with case.studio.server.services.database.connection() as conn:
        await conn.execute(statement, *values)


@asynccontextmanager
async def changed(case: Case, kind: str, value: dict[str, Any]) -> AsyncIterator[None]:
    """Change fields of the config `default` of a kind during the block."""
    newest = "select value from newest_configs where app_id = 'default' and kind = $1 and name = 'default'"
    async with case.studio.server.services.database.connection() as conn:
        before = await conn.fetchval(newest, kind)
    for key in before.get("server_keys", ()):
        key["secret"] = SERVER_KEY  # What is stored does not show it.
    await case.put(kind, "default", {**before, **value})
    try:
        yield
    finally:
        await case.put(kind, "default", before)


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Case]:
    folder = tmp_path_factory.mktemp("data")
    stores = databases.stores
    target = stores.database_url.partition("host=")[2].partition("&")[0]
    async with (
        databases.new(seeded=True) as database_url,
        valkey_proxy_to(f"{target}/{SOCKET}", folder / SOCKET) as database,
        listening() as sandbox,
    ):
        with listening_socket() as listener:
            url = database_url.replace(f"host={target}", f"host={folder}")
            settings = settings_of(stores, url, listener.getsockname()[1], folder / "files")
            async with open_services(settings) as services, running_server(services, listener) as server:
                studio = Studio(server, sandbox, *(await server.login()))
                await studio.set_up(quota=None)
                _, answer = await studio.later()
                yield Case(studio, database, known=answer["id"])


def body_of(path: str) -> dict[str, Any]:
    """Return the body of a request that succeeds."""
    if path.endswith(SYNC):
        return {"strategy": "faces", "version": VERSION, "input": {"prompt": "x"}}
    if path.endswith(ASYNC):
        data = {"version": VERSION, "input": {"prompt": "x"}}
        return {"strategy": "faces", "module": "prediction", "data": data}
    return {}


def errors_at(index: int) -> list[type[ServiceError]]:
    """The errors that are listed for a path, without those that only other tests cause."""
    row, path = PLACES[index]
    is_limited = row.limit is not None or is_server_path(path)
    return [
        error
        for error in dict.fromkeys(errors_of(row, path))
        if error not in ELSEWHERE and (is_limited or error is not RateLimited)
    ]


@pytest.mark.parametrize("index", range(len(PLACES)), ids=lambda index: PLACES[index][1])
async def test_each_listed_error_is_answered(testbed: Case, index: int) -> None:
    row, path = PLACES[index]
    case = replace(testbed, method=row.method, path=path, body=body_of(path))
    wrong = []
    for error in errors_at(index):
        status, answer = await CAUSES[error](case)
        found = (status, answer.get("error", {}).get("error_type"))
        if found != (status_of(error, row.area.statuses), error.error_type):
            wrong.append((error.__name__, found, answer))
    assert wrong == []
    assert (await case.ask())[0] == 200


@pytest.mark.parametrize(("row", "path"), PLACES, ids=lambda value: value if isinstance(value, str) else "")
def test_errors_of_the_interface_are_listed(row: Any, path: str) -> None:
    listed = {error.error_type for error in errors_of(row, path)}
    assert "config_invalid" in listed
    assert "item_not_found" in listed or path.endswith(UPLOAD)
    assert ("ai_free_limit" in listed) == path.endswith((SYNC, ASYNC))
    assert "backend unavailable" in listed
