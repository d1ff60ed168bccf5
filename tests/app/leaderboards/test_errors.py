"""Each path of boards answers with each error that its row lists, and with those that the interface lists."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from app.http.errors import DeactivationPending, InvalidApiVersion, UserNotFound, status_of
from app.http.paths import is_server_path
from app.http.row_errors import errors_of
from app.leaderboards.errors import InReward
from app.leaderboards.routes import LEADERBOARD_ROUTES
from app.services import open_services
from streams.wire.errors import (
    AppNotFound,
    AuthFailed,
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
from tests.app.leaderboards.boards import Boards
from tests.app.valkey_proxy import ValkeyProxy, valkey_proxy_to
from tests.servers import Databases, listening_socket, running_server, settings_of
from tests.waiting import until

PLACES = [(row, path) for row in LEADERBOARD_ROUTES for path in row.paths]
INTERFACE = "invalid_parameter, config_invalid, database, redis_service"
"""The types of errors that the interface lists for both (§4.14)."""
ELSEWHERE = {
    InternalError: "only a bug causes it",
    Unavailable: "`tests/app/ai/test_large_responses.py` does not read",
}
SOCKET = ".s.PGSQL.5432"


@dataclass(frozen=True)
class Case:
    """A path, and a user of a server whose stores can be stopped."""

    boards: Boards
    path: str
    uid: str
    valkey: ValkeyProxy
    database: ValkeyProxy

    @property
    def of_server(self) -> bool:
        return is_server_path(self.path)

    async def ask(self, *, uid: str | None = None, data: bytes | None = None, **headers: str) -> tuple[int, Any]:
        """Send a request that succeeds, unless something is changed."""
        body = {"name": self.boards.name, "from": 1, "to": 5, "around": 1, "data": {"score": 7}}
        sent = token(scope="leaderboards") if self.of_server else self.boards.sessions[self.uid]
        headers = {**sent, **{name.replace("_", "-"): text for name, text in headers.items()}}
        url = self.path.format(user_id=uid or self.uid)
        given: dict[str, Any] = {"json": body} if data is None else {"data": data}
        return await ask(self.boards.server, "POST", url, headers=headers, **given)

    async def recovered(self) -> None:
        async def works() -> bool:
            return (await self.ask())[0] == 200

        await until(works)


Cause = Callable[[Case], Awaitable[tuple[int, Any]]]
CAUSES: dict[type[ServiceError], Cause] = {
    InvalidApiVersion: lambda case: case.ask(X_Service_Api_Version="2"),
    AppNotFound: lambda case: case.ask(X_Service_App_Id="none"),
    InvalidSession: lambda case: case.ask(X_Service_Session_Token="st_ended"),
    UserNotFound: lambda case: case.ask(uid="nobody"),
    PermissionDenied: lambda case: case.ask(**token(scope="assets")),
    InvalidParameter: lambda case: case.ask(data=b"{}"),
    TooLarge: lambda case: case.ask(data=b" " * 1_000_000),
}


def causes(error: type[ServiceError]) -> Callable[[Cause], Cause]:
    def declare(cause: Cause) -> Cause:
        CAUSES[error] = cause
        return cause

    return declare


@causes(AuthFailed)
async def with_a_wrong_proof(case: Case) -> tuple[int, Any]:
    if case.of_server:
        return await case.ask(X_Service_Auth_Token="wrong")
    auth = {"require_sign": True, "sign_keys": [{"id": "one", "key": "a key of the app"}]}
    async with changed(case, "auth", "default", auth):
        return await case.ask(X_Service_Sign="wrong")


@causes(ConfigInvalid)
async def of_another_board(case: Case) -> tuple[int, Any]:
    return await replace(case, boards=Boards.like(case.boards)).ask()


@causes(DeactivationPending)
async def of_a_frozen_user(case: Case) -> tuple[int, Any]:
    uid = await case.boards.user()
    path, headers = "/bp/user/me/deactivate", case.boards.sessions[uid]
    assert (await ask(case.boards.server, "POST", path, headers=headers))[0] == 200
    return await replace(case, uid=uid).ask()


@causes(DatabaseError)
async def without_its_tables(case: Case) -> tuple[int, Any]:
    await case.boards.fetch("alter table leaderboard_scores rename to away")
    try:
        return await case.ask()
    finally:
        await case.boards.fetch("alter table away rename to leaderboard_scores")


@causes(DatabaseUnavailable)
async def without_the_database(case: Case) -> tuple[int, Any]:
    await case.database.stop()
    try:
        return await case.ask()
    finally:
        await case.database.start()
        await case.recovered()


@causes(ValkeyError)
async def with_a_key_of_another_type(case: Case) -> tuple[int, Any]:
    client, keys = case.boards.server.services.valkey.client, await case.boards.keys()
    for key in keys:
        await client.set(key, "no index")
    try:
        return await case.ask()
    finally:
        await client.delete(*keys)


@causes(ValkeyUnavailable)
async def without_valkey(case: Case) -> tuple[int, Any]:
    await case.valkey.stop()
    try:
        return await case.ask()
    finally:
        await case.valkey.start()
        await case.recovered()


@causes(RateLimited)
async def too_often(case: Case) -> tuple[int, Any]:
    rate = {"count": 1, "per_s": 3600}
    async with changed(case, "limits", "default", {"rates": {"board_upload": rate, "server": rate}}):
        for _ in range(3):
            found = await case.ask()
        return found


@causes(InReward)
async def after_the_end_of_a_period(case: Case) -> tuple[int, Any]:
    boards = Boards.like(case.boards)
    now = await boards.now()
    at = f"{now - timedelta(hours=1):%H:%M}"
    rewards = [{"from": 1, "to": 1, "product": "coins_100"}]
    await boards.configure(reset={"every": "day", "at": at}, rewards=rewards)
    changed_case = replace(case, boards=boards)
    assert (await changed_case.ask())[0] == 200
    await boards.move_to(now + timedelta(hours=23))
    try:
        return await changed_case.ask()
    finally:
        await boards.server.services.clock.move("default", offset_s=0)


@asynccontextmanager
async def changed(case: Case, kind: str, name: str, value: dict[str, Any]) -> AsyncIterator[None]:
    """Change fields of a config during the block."""
    newest = "select value from newest_configs where app_id = 'default' and kind = $1 and name = $2"
    [row] = await case.boards.fetch(newest, kind, name)
    await case.boards.put_config(kind, name, {**row["value"], **value})
    try:
        yield
    finally:
        await case.boards.put_config(kind, name, row["value"])


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Case]:
    folder = tmp_path_factory.mktemp("data")
    stores = databases.stores
    target = stores.database_url.partition("host=")[2].partition("&")[0]
    async with (
        databases.new(seeded=True) as database_url,
        valkey_proxy_to(stores.redis_url, folder / "v.sock") as valkey,
        valkey_proxy_to(f"{target}/{SOCKET}", folder / SOCKET) as database,
    ):
        with listening_socket() as listener:
            settings = settings_of(
                replace(stores, redis_url=valkey.url),
                database_url.replace(f"host={target}", f"host={folder}"),
                listener.getsockname()[1],
                folder / "files",
            )
            async with open_services(settings) as services, running_server(services, listener) as server:
                boards = Boards(server)
                yield Case(boards, "", await boards.user(), valkey, database)


def errors_at(index: int) -> list[type[ServiceError]]:
    """The errors that are listed for a path, without those that only other tests cause."""
    row, path = PLACES[index]
    is_limited = row.limit is not None or is_server_path(path)
    return [
        error
        for error in dict.fromkeys(errors_of(row, path))
        # Otherwise the only limit is that of large responses, which are not read.
        if error not in ELSEWHERE and (is_limited or error is not RateLimited)
    ]


@pytest.mark.parametrize("index", range(len(PLACES)), ids=lambda index: PLACES[index][1])
async def test_each_listed_error_is_answered(testbed: Case, index: int) -> None:
    row, path = PLACES[index]
    await testbed.boards.configure()
    case = replace(testbed, path=path)
    wrong = []
    for error in errors_at(index):
        await case.boards.put(case.uid, 3, extra={"car": "red"})  # A query reads it from the database.
        await case.boards.read(case.uid)
        await case.boards.indexed()
        status, answer = await CAUSES[error](case)
        found = (status, answer["error"]["error_type"])
        if found != (status_of(error, row.area.statuses), error.error_type):
            wrong.append((error.__name__, found, answer))
    assert wrong == []
    assert (await case.ask())[0] == 200


@pytest.mark.parametrize(("row", "path"), PLACES, ids=lambda value: value if isinstance(value, str) else "")
def test_errors_of_the_interface_are_listed(row: Any, path: str) -> None:
    listed = {error.error_type for error in errors_of(row, path)}
    assert set(INTERFACE.split(", ")) <= listed
    assert ("leaderboard.in_reward" in listed) == path.endswith("/data")
