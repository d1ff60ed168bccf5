"""Each endpoint of emails of apps answers with each error that its row lists, and with those of the interface."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from app.http.caller import Access
from app.http.errors import DeactivationPending, InvalidApiVersion, UserNotFound, status_of
from app.http.idempotency import ERRORS as OF_KEYS
from app.http.paths import is_server_path
from app.http.row_errors import errors_of
from app.mail.errors import ApiEmailInvalid, EmailToInvalid
from app.mail.links import Subscription, unsubscribe_url
from app.mail.routes import MAIL_HUB_ROUTES
from app.services import open_services
from storage.mails import SendDuplicate
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
from tests.app.mail.hub import Hub, Person, new_address
from tests.app.operators import Operator
from tests.app.valkey_proxy import ValkeyProxy, valkey_proxy_to
from tests.config_stores import store_unchecked
from tests.servers import SERVER_KEY, Databases, listening_socket, running_server, settings_of
from tests.waiting import until

ROWS = {(row.method, path): row for row in MAIL_HUB_ROUTES for path in row.paths}
ELSEWHERE: dict[type[ServiceError], str] = {
    InternalError: "only a bug causes it",
    Unavailable: "`tests/app/ai/test_large_responses.py` does not read",
    ValkeyError: "limits are counted in the process without Valkey",
    ValkeyUnavailable: "the same",
    **dict.fromkeys(OF_KEYS, "`tests/app/test_idempotency.py`"),
}
INTERFACE = {
    "mail_hub.api_email_invalid",
    "mail_hub.email_to_invalid",
    "mail_hub.send_duplicate",
    "invalid_parameter",
}
SOCKET = ".s.PGSQL.5432"
Answer = tuple[int, Any]


@dataclass(frozen=True)
class Case:
    """An endpoint, and a user of a server whose database can be stopped."""

    hub: Hub
    database: ValkeyProxy
    person: Person
    method: str = ""
    path: str = ""

    @property
    def of_server(self) -> bool:
        return is_server_path(self.path)

    @property
    def is_public(self) -> bool:
        return ROWS[self.method, self.path].area.access is Access.PUBLIC

    async def ask(
        self, *, uid: str = "", body: Any = None, data: bytes | None = None, link_token: str = "", **headers: str
    ) -> Answer:
        """Send a request that succeeds, unless something is changed."""
        url = unsubscribe_url(self.hub.server.services, Subscription("default", "ada@example.com", "news"))
        given = {} if self.is_public else token(scope="mail") if self.of_server else self.person.session
        headers = {**given, **{name.replace("_", "-"): text for name, text in headers.items()}}
        options: dict[str, Any] = {"params": {"token": link_token or url.partition("?token=")[2]}}
        if not self.is_public:
            options = {"json": {"name": "news", "email_to": new_address(), **(body or {})}}
        if data is not None:
            options = {"data": data}
        path = self.path.format(user_id=uid or self.person.uid)
        return await ask(self.hub.server, self.method, path, headers=headers, **options)

    @asynccontextmanager
    async def changed(self, kind: str, **fields: Any) -> AsyncIterator[None]:
        """Change fields of a config during the block, whether they are valid or not."""
        operator, path = Operator(self.hub.server), f"configs/default/{kind}/default"
        usual = (await operator("GET", path)).body["value"]
        if kind == "auth":  # Secrets are not shown.
            usual["server_keys"] = [{"kid": "development", "alg": "HS256", "secret": SERVER_KEY}]
        await store_unchecked(self.hub.server.services, kind, "default", usual | fields)
        try:
            yield
        finally:
            assert (await operator.put(path, usual)).status == 200

    @asynccontextmanager
    async def broken_limits(self) -> AsyncIterator[None]:
        """Let no version of this server accept the limits of the app during the block."""
        for statement in (_BREAK, _CHANGE):
            await self.hub.execute(statement)
        await self.hub.server.services.configs.refresh()
        try:
            yield
        finally:
            await self.hub.limit()


_BREAK = """
update config_revisions set value = '{"body_bytes": -1}' where kind = 'limits' and (app_id, name, revision) in (
    select app_id, name, revision from configs where kind = 'limits' and app_id = 'default')
"""
_CHANGE = """
with next as (update config_changes set change = change + 1 returning change)
update configs set change = next.change from next where kind = 'limits' and app_id = 'default'
"""
Cause = Callable[[Case], Awaitable[Answer]]


async def of_an_unusable_config(case: Case) -> Answer:
    if not case.is_public:
        return await case.ask(body={"name": "none"})
    async with case.broken_limits():
        return await case.ask(X_Service_App_Id="default")


async def with_a_wrong_proof(case: Case) -> Answer:
    if case.of_server:
        return await case.ask(X_Service_Auth_Token="wrong")
    async with case.changed("auth", require_sign=True, sign_keys=[{"id": "one", "key": "a key of the app"}]):
        return await case.ask(X_Service_Sign="wrong")


async def with_an_invalid_body_or_token(case: Case) -> Answer:
    if case.path.endswith("i.gif"):
        return await case.ask(Content_Encoding="gzip")
    return await (case.ask(link_token="x") if case.is_public else case.ask(data=b"{}"))


async def of_a_frozen_user(case: Case) -> Answer:
    person = await case.hub.person(with_email=False)
    path = "/bp/user/me/deactivate"
    assert (await ask(case.hub.server, "POST", path, headers=person.session))[0] == 200
    return await replace(case, person=person).ask()


async def without_their_tables(case: Case) -> Answer:
    for table in ("mails", "suppressions"):
        await case.hub.execute(f"alter table {table} rename to {table}_away")
    try:
        return await case.ask()
    finally:
        for table in ("mails", "suppressions"):
            await case.hub.execute(f"alter table {table}_away rename to {table}")


async def without_the_database(case: Case) -> Answer:
    await case.database.stop()
    try:
        return await case.ask()
    finally:
        await case.database.start()

        async def works() -> bool:
            await case.hub.execute("delete from mails")
            return (await case.ask())[0] == 200

        await until(works)


async def too_often(case: Case) -> Answer:
    rate = {"count": 1, "per_s": 3600}
    async with case.changed("limits", rates={"mail_user": rate, "server": rate}):
        for _ in range(3):
            found = await case.ask()
        return found


async def by_a_strategy_that_names_its_recipient(case: Case) -> Answer:
    await case.hub.strategy("closed", enable_api_email=False)
    return await case.ask(body={"name": "closed"})


async def while_another_one_is_sent(case: Case) -> Answer:
    assert (await case.ask())[0] == 200
    return await case.ask()


CAUSES: dict[type[ServiceError], Cause] = {
    InvalidApiVersion: lambda case: case.ask(X_Service_Api_Version="2"),
    AppNotFound: lambda case: case.ask(X_Service_App_Id="none"),
    ConfigInvalid: of_an_unusable_config,
    AuthFailed: with_a_wrong_proof,
    InvalidSession: lambda case: case.ask(X_Service_Session_Token="st_ended"),
    PermissionDenied: lambda case: case.ask(**token(scope="assets")),
    UserNotFound: lambda case: case.ask(uid="0" * 32),
    DeactivationPending: of_a_frozen_user,
    InvalidParameter: with_an_invalid_body_or_token,
    TooLarge: lambda case: case.ask(data=b" " * 400_000),
    DatabaseError: without_their_tables,
    DatabaseUnavailable: without_the_database,
    RateLimited: too_often,
    ApiEmailInvalid: by_a_strategy_that_names_its_recipient,
    EmailToInvalid: lambda case: case.ask(body={"email_to": "ada"}),
    SendDuplicate: while_another_one_is_sent,
}


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Case]:
    folder = tmp_path_factory.mktemp("data")
    target = databases.stores.database_url.partition("host=")[2].partition("&")[0]
    async with (
        databases.new(seeded=True) as database_url,
        valkey_proxy_to(f"{target}/{SOCKET}", folder / SOCKET) as database,
    ):
        with listening_socket() as listener:
            at = database_url.replace(f"host={target}", f"host={folder}")
            settings = settings_of(databases.stores, at, listener.getsockname()[1], folder / "files")
            async with open_services(settings) as services, running_server(services, listener) as server:
                hub = Hub(server)
                await hub.limit()
                await hub.strategy()
                yield Case(hub, database, await hub.person(with_email=False))


@pytest.mark.parametrize("place", sorted(ROWS), ids=" ".join)
async def test_each_listed_error_is_answered(testbed: Case, place: tuple[str, str]) -> None:
    method, path = place
    case, row, wrong = replace(testbed, method=method, path=path), ROWS[place], []
    for error in dict.fromkeys(errors_of(row, path)):
        if error in ELSEWHERE:
            continue
        await case.hub.execute("delete from mails")
        status, answer = await CAUSES[error](case)
        found = (status, None if method == "HEAD" else (answer or {}).get("error", {}).get("error_type"))
        if found != (status_of(error, row.area.statuses), None if method == "HEAD" else error.error_type):
            wrong.append((error.__name__, found, answer))
    assert wrong == []
    await case.hub.execute("delete from mails")
    assert (await case.ask())[0] == 200


def test_errors_of_the_interface_are_listed() -> None:
    for (_, path), row in ROWS.items():
        if "mail_hub" in path:
            assert {error.error_type for error in errors_of(row, path)} >= INTERFACE
