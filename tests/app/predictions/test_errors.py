"""Each path of predictions answers with each error that its row lists, and with those that the interface lists."""

import io
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from actors.clients.strategies import StrategyNotFound
from app.http.errors import DeactivationPending
from app.http.paths import is_server_path
from app.http.rows.endpoint import Endpoint
from app.http.rows.row_errors import errors_of
from app.predictions.routes import PREDICTION_ROUTES
from storage.assets.quotas import QuotaUsed
from storage.objects.contract import ObjectsError, ObjectsUnavailable
from storage.tasks.predictions import PredictionNotFound
from streams.wire.errors import (
    BackendUnavailable,
    ConfigInvalid,
    DatabaseError,
    DatabaseUnavailable,
    InvalidParameter,
    TooLarge,
)
from tests.app.callers import ask
from tests.app.http.rows.listed_errors import (
    OF_KEYS,
    WITHOUT_VALKEY,
    Answer,
    ErrorTable,
    Place,
    frozen_user,
    without_a_key_of_auth,
    without_tables,
    wrong_answers,
)
from tests.app.predictions.hosts import VERSION, Studio
from tests.app.stoppable_stores import open_stoppable, stopped
from tests.app.valkey_proxy import ValkeyProxy
from tests.running.config_stores import store_unchecked
from tests.running.servers import Databases, Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import listening

TABLE = ErrorTable(
    PREDICTION_ROUTES,
    elsewhere={
        **WITHOUT_VALKEY,
        **OF_KEYS,
        ObjectsUnavailable: "`tests/storage/objects/test_s3.py` stops the store",
    },
)
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

    @property
    def server(self) -> Server:
        return self.studio.server

    @property
    def row(self) -> Endpoint:
        return TABLE.rows[self.method, self.path]

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


@TABLE.causes(StrategyNotFound)
async def by_a_strategy_that_does_not_exist(case: Case) -> Answer:
    return await case.with_body(strategy="none").ask()


@TABLE.causes(PredictionNotFound)
async def of_an_unknown_prediction(case: Case) -> Answer:
    return await case.ask(known="0" * 32)


@TABLE.causes(TooLarge)
async def with_a_large_body(case: Case) -> Answer:
    return await case.ask(data=b" " * (21 * 1024 * 1024 if UPLOAD in case.path else 400_000))


@TABLE.causes(InvalidParameter)
async def with_a_body_that_is_none(case: Case) -> Answer:
    if case.method == "GET":
        return await case.ask(Content_Encoding="gzip")
    return await case.ask(data=b"{}")


@TABLE.causes(ConfigInvalid)
async def of_a_strategy_without_its_account(case: Case) -> Answer:
    """Or, of an endpoint without a strategy, without a key that the app's authentication needs."""
    if case.body:
        await case.put("predictions", "broken", {"account": "missing"})
        return await case.with_body(strategy="broken").ask()
    return await without_a_key_of_auth(case)


@TABLE.causes(DeactivationPending)
async def of_a_frozen_user(case: Case) -> Answer:
    other = replace(case.studio)
    other.uid, headers = await frozen_user(case.server)
    other.session = headers["X-Service-Session-Token"]
    return await replace(case, studio=other).ask()


@TABLE.causes(DatabaseError)
async def without_its_tables(case: Case) -> Answer:
    async with without_tables(case.server, "predictions", "task_files"):
        return await case.ask()


@TABLE.causes(DatabaseUnavailable)
async def without_the_database(case: Case) -> Answer:
    async with stopped(case.database, case.ask):
        return await case.ask()


@TABLE.causes(QuotaUsed)
async def without_units(case: Case) -> Answer:
    await case.put("predictions", "paid", {"account": "host", "quota": {"asset": "pearls"}})
    return await case.with_body(strategy="paid").ask()


@TABLE.causes(BackendUnavailable)
async def while_the_host_fails(case: Case) -> Answer:
    await case.studio.set_up(key=key_of(fault="server_error"), quota=None)
    try:
        return await case.ask()
    finally:
        await case.studio.set_up(quota=None)


@TABLE.causes(ObjectsError)
async def without_the_folder_of_files(case: Case) -> Answer:
    folder = case.studio.server.services.settings.data_dir / "objects"
    shutil.move(folder, away := folder.with_name("away"))
    folder.write_bytes(b"")
    try:
        return await case.with_body(input={"files": ["a.png"]}).ask()
    finally:
        folder.unlink()
        shutil.move(away, folder)


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Case]:
    async with (
        open_stoppable(databases, tmp_path_factory.mktemp("data")) as stores,
        listening() as sandbox,
    ):
        studio = Studio(stores.server, sandbox, *(await stores.server.login()))
        await studio.set_up(quota=None)
        _, answer = await studio.later()
        yield Case(studio, stores.database, known=answer["id"])


def body_of(path: str) -> dict[str, Any]:
    """Return the body of a request that succeeds."""
    if path.endswith(SYNC):
        return {"strategy": "faces", "version": VERSION, "input": {"prompt": "x"}}
    if path.endswith(ASYNC):
        data = {"version": VERSION, "input": {"prompt": "x"}}
        return {"strategy": "faces", "module": "prediction", "data": data}
    return {}


@pytest.mark.folder
@pytest.mark.parametrize("place", TABLE.places, ids=" ".join)
async def test_each_listed_error_is_answered(testbed: Case, place: Place) -> None:
    method, path = place
    case = replace(testbed, method=method, path=path, body=body_of(path))

    async def prepared() -> Case:
        return case

    assert await wrong_answers(TABLE.listed_at(place), prepared) == []
    assert (await case.ask())[0] == 200


@pytest.mark.parametrize("place", TABLE.places, ids=" ".join)
def test_errors_of_the_interface_are_listed(place: Place) -> None:
    path = place[1]
    listed = {error.error_type for error in errors_of(TABLE.rows[place], path)}
    assert "config_invalid" in listed
    assert "item_not_found" in listed or path.endswith(UPLOAD)
    assert ("ai_free_limit" in listed) == path.endswith((SYNC, ASYNC))
    assert "backend unavailable" in listed
