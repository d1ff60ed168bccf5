"""Each path of boards answers with each error that its row lists, and with those that the interface lists."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from app.http.errors import DeactivationPending
from app.http.paths import is_server_path
from app.http.rows.endpoint import Endpoint
from app.http.rows.row_errors import errors_of
from app.leaderboards.errors import InReward
from app.leaderboards.routes import LEADERBOARD_ROUTES
from streams.wire.errors import (
    ConfigInvalid,
    DatabaseError,
    DatabaseUnavailable,
    InvalidParameter,
    ValkeyError,
    ValkeyUnavailable,
)
from tests.app.callers import ask, token
from tests.app.http.rows.listed_errors import Answer, ErrorTable, Place, frozen_user, without_tables, wrong_answers
from tests.app.leaderboards.boards import Boards
from tests.app.stoppable_stores import Stoppable, open_stoppable, stopped
from tests.running.servers import Databases, Server

TABLE = ErrorTable(LEADERBOARD_ROUTES, elsewhere={})
INTERFACE = "invalid_parameter, config_invalid, database, redis_service"
"""The types of errors that the interface lists for both (§4.14)."""


@dataclass(frozen=True)
class Case:
    """A path, and a user of a server whose stores can be stopped."""

    boards: Boards
    stores: Stoppable
    uid: str
    path: str = ""

    @property
    def server(self) -> Server:
        return self.stores.server

    @property
    def row(self) -> Endpoint:
        return TABLE.rows["POST", self.path]

    async def ask(self, *, uid: str = "", data: bytes | None = None, **headers: str) -> Answer:
        """Send a request that succeeds, unless something is changed."""
        body = {"name": self.boards.name, "from": 1, "to": 5, "around": 1, "data": {"score": 7}}
        sent = token(scope="leaderboards") if is_server_path(self.path) else self.boards.sessions[self.uid]
        headers = {**sent, **{name.replace("_", "-"): text for name, text in headers.items()}}
        url = self.path.format(user_id=uid or self.uid)
        given: dict[str, Any] = {"json": body} if data is None else {"data": data}
        return await ask(self.server, "POST", url, headers=headers, **given)


@TABLE.causes(InvalidParameter)
async def with_an_empty_body(case: Case) -> Answer:
    return await case.ask(data=b"{}")


@TABLE.causes(ConfigInvalid)
async def of_another_board(case: Case) -> Answer:
    return await replace(case, boards=Boards.like(case.boards)).ask()


@TABLE.causes(DeactivationPending)
async def of_a_frozen_user(case: Case) -> Answer:
    uid, case.boards.sessions[uid] = await frozen_user(case.server)
    return await replace(case, uid=uid).ask()


@TABLE.causes(DatabaseError)
async def without_its_tables(case: Case) -> Answer:
    async with without_tables(case.server, "leaderboard_scores"):
        return await case.ask()


@TABLE.causes(DatabaseUnavailable)
async def without_the_database(case: Case) -> Answer:
    async with stopped(case.stores.database, case.ask):
        return await case.ask()


@TABLE.causes(ValkeyError)
async def with_a_key_of_another_type(case: Case) -> Answer:
    client, keys = case.server.services.valkey.client, await case.boards.keys()
    for key in keys:
        await client.set(key, "no index")
    try:
        return await case.ask()
    finally:
        await client.delete(*keys)


@TABLE.causes(ValkeyUnavailable)
async def without_valkey(case: Case) -> Answer:
    """Queries are counted then, unless too many others are."""
    counting = case.server.services.boards.counting
    async with stopped(case.stores.valkey, case.ask):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("app.leaderboards.query._COUNT_S", 0.05)
            async with counting, counting:
                return await case.ask()


@TABLE.causes(InReward)
async def after_the_end_of_a_period(case: Case) -> Answer:
    boards = Boards.like(case.boards)
    await boards.move_to("2027-01-15T12:00:00Z")
    try:
        rewards = [{"from": 1, "to": 1, "product": "coins_100"}]
        await boards.configure(reset={"every": "day", "at": "11:00"}, rewards=rewards)
        changed_case = replace(case, boards=boards, uid=await boards.user())
        assert (await changed_case.ask())[0] == 200
        await boards.move_to("2027-01-16T11:05:00Z")
        return await changed_case.ask()
    finally:
        await boards.server.services.clock.move("default", offset_s=0)


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Case]:
    async with open_stoppable(databases, tmp_path_factory.mktemp("data")) as stores:
        boards = Boards(stores.server)
        await boards.without_limits()
        yield Case(boards, stores, await boards.user())


@pytest.mark.parametrize("place", TABLE.places, ids=" ".join)
async def test_each_listed_error_is_answered(testbed: Case, place: Place) -> None:
    await testbed.boards.configure()
    case = replace(testbed, path=place[1])

    async def prepared() -> Case:
        await case.boards.put(case.uid, 3, extra={"car": "red"})  # A query reads it from the database.
        await case.boards.read(case.uid)
        await case.boards.indexed()
        return case

    assert await wrong_answers(TABLE.listed_at(place), prepared) == []
    assert (await case.ask())[0] == 200


@pytest.mark.parametrize("place", TABLE.places, ids=" ".join)
def test_errors_of_the_interface_are_listed(place: Place) -> None:
    listed = {error.error_type for error in errors_of(TABLE.rows[place], place[1])}
    assert set(INTERFACE.split(", ")) <= listed
    assert ("leaderboard.in_reward" in listed) == place[1].endswith("/data")
