"""Each endpoint of emails of apps answers with each error that its row lists, and with those of the interface."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from app.http.callers.caller import Access
from app.http.errors import DeactivationPending
from app.http.paths import is_server_path
from app.http.rows.endpoint import Endpoint
from app.http.rows.row_errors import errors_of
from app.mail.errors import ApiEmailInvalid, EmailToInvalid
from app.mail.links import Subscription, unsubscribe_url
from app.mail.routes import MAIL_HUB_ROUTES
from storage.mail.mails import SendDuplicate
from streams.wire.errors import (
    ConfigInvalid,
    DatabaseError,
    DatabaseUnavailable,
    InvalidParameter,
)
from tests.app.callers import ask, token
from tests.app.http.rows.listed_errors import (
    OF_KEYS,
    WITHOUT_VALKEY,
    Answer,
    ErrorTable,
    Place,
    frozen_user,
    stored_as,
    without_tables,
    wrong_answers,
)
from tests.app.mail.hub import Hub, Person, new_address
from tests.app.stoppable_stores import open_stoppable, stopped
from tests.app.valkey_proxy import ValkeyProxy
from tests.running.servers import Databases, Server

TABLE = ErrorTable(
    MAIL_HUB_ROUTES,
    elsewhere={**WITHOUT_VALKEY, **OF_KEYS},
)
INTERFACE = {
    "mail_hub.api_email_invalid",
    "mail_hub.email_to_invalid",
    "mail_hub.send_duplicate",
    "invalid_parameter",
}


@dataclass(frozen=True)
class Case:
    """An endpoint, and a user of a server whose database can be stopped."""

    hub: Hub
    database: ValkeyProxy
    person: Person
    method: str = ""
    path: str = ""

    @property
    def server(self) -> Server:
        return self.hub.server

    @property
    def row(self) -> Endpoint:
        return TABLE.rows[self.method, self.path]

    @property
    def is_public(self) -> bool:
        return self.row.area.access is Access.PUBLIC

    async def ask(
        self, *, uid: str = "", body: Any = None, data: bytes | None = None, link_token: str = "", **headers: str
    ) -> Answer:
        """Send a request that succeeds, unless something is changed."""
        url = unsubscribe_url(self.hub.server.services, Subscription("default", "ada@example.com", "news"))
        given = {} if self.is_public else token(scope="mail") if is_server_path(self.path) else self.person.session
        headers = {**given, **{name.replace("_", "-"): text for name, text in headers.items()}}
        options: dict[str, Any] = {"params": {"token": link_token or url.partition("?token=")[2]}}
        if not self.is_public:
            options = {"json": {"name": "news", "email_to": new_address(), **(body or {})}}
        if data is not None:
            options = {"data": data}
        path = self.path.format(user_id=uid or self.person.uid)
        return await ask(self.hub.server, self.method, path, headers=headers, **options)


@TABLE.causes(ConfigInvalid)
async def of_an_unusable_config(case: Case) -> Answer:
    if not case.is_public:
        return await case.ask(body={"name": "none"})
    async with stored_as(case.server, "limits", "default", {"body_bytes": -1}):
        return await case.ask(X_Service_App_Id="default")


@TABLE.causes(InvalidParameter)
async def with_an_invalid_body_or_token(case: Case) -> Answer:
    if case.path.endswith("i.gif"):
        return await case.ask(Content_Encoding="gzip")
    return await (case.ask(link_token="x") if case.is_public else case.ask(data=b"{}"))


@TABLE.causes(DeactivationPending)
async def of_a_frozen_user(case: Case) -> Answer:
    return await replace(case, person=Person(*await frozen_user(case.server), "")).ask()


@TABLE.causes(DatabaseError)
async def without_their_tables(case: Case) -> Answer:
    async with without_tables(case.server, "mails", "suppressions"):
        return await case.ask()


@TABLE.causes(DatabaseUnavailable)
async def without_the_database(case: Case) -> Answer:
    async def works() -> Answer:
        await case.hub.execute("delete from mails")
        return await case.ask()

    async with stopped(case.database, works):
        return await case.ask()


@TABLE.causes(ApiEmailInvalid)
async def by_a_strategy_that_names_its_recipient(case: Case) -> Answer:
    await case.hub.strategy("closed", enable_api_email=False)
    return await case.ask(body={"name": "closed"})


@TABLE.causes(SendDuplicate)
async def while_another_one_is_sent(case: Case) -> Answer:
    assert (await case.ask())[0] == 200
    return await case.ask()


@TABLE.causes(EmailToInvalid)
async def to_no_address(case: Case) -> Answer:
    return await case.ask(body={"email_to": "ada"})


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Case]:
    async with open_stoppable(databases, tmp_path_factory.mktemp("data")) as stores:
        hub = Hub(stores.server)
        await hub.limit()
        await hub.strategy()
        yield Case(hub, stores.database, await hub.person(with_email=False))


@pytest.mark.parametrize("place", TABLE.places, ids=" ".join)
async def test_each_listed_error_is_answered(testbed: Case, place: Place) -> None:
    method, path = place
    case = replace(testbed, method=method, path=path)

    async def prepared() -> Case:
        await case.hub.execute("delete from mails")
        return case

    assert await wrong_answers(TABLE.listed_at(place), prepared) == []
    assert (await (await prepared()).ask())[0] == 200


def test_errors_of_the_interface_are_listed() -> None:
    for (_, path), row in TABLE.rows.items():
        if "mail_hub" in path:
            assert {error.error_type for error in errors_of(row, path)} >= INTERFACE
