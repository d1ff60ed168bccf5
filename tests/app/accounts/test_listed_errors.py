"""Each account endpoint answers with each error that the interface lists for it, to clients and to servers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest

from app.accounts.routes import ACCOUNT_ROUTES
from app.http.errors import status_of
from app.http.row_errors import errors_of
from storage.audit import COMMAND
from storage.config_rows import ConfigKey
from tests.app.accounts.interface_errors import IMPOSSIBLE, LISTED, Listing
from tests.app.accounts.mailbox import (
    NEW_PASSWORD,
    PASSWORD,
    Mailbox,
    link_in,
    new_address,
    open_mailbox,
    session_of,
)
from tests.app.accounts.people import ask, new_user, player, token
from tests.app.accounts.platforms import proof
from tests.servers import SERVER_KEY

pytestmark = pytest.mark.xdist_group("listed_errors")  # One worker opens the mailbox.

AUTH = {"server_keys": [{"kid": "development", "alg": "HS256", "secret": SERVER_KEY}], "require_sign": False}
EMAIL = {"mail_accounts": ["inbox"], "code_login": True, "activation": True}
FULL = """
create function full_disk() returns trigger language plpgsql as $$ begin
    raise exception 'No space left on device' using errcode = '53100';
end $$;
create trigger full_disk before insert on procrastinate_jobs execute function full_disk()
"""
Answer = tuple[int, Any]


@dataclass
class Caller:
    """A client with a new user, or an app's server that acts for the user, at one endpoint."""

    box: Mailbox
    listing: Listing
    server: bool
    values: dict[str, str] = field(default_factory=lambda: {"platform": "social_network_a", "id": "1"})
    """The parameters of the path."""
    session: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    """Headers of the call beside those that authenticate it."""

    async def be_new_user(self) -> str:
        self.values["user_id"], self.session = await new_user(self.box.server)
        return self.values["user_id"]

    async def be_signed_up(self) -> str:
        """Sign up with an address that is not verified, and return the address."""
        address = new_address()
        result = await self.box.sign_up(address)
        self.session, self.values["user_id"] = session_of(result), result[1]["user"]["uid"]
        return address

    async def call(self, body: Any = None, *, method: str = "", query: str = "") -> Answer:
        """Call the endpoint with its path for clients or for servers."""
        path = self.listing.server_path if self.server else self.listing.path
        headers = {**self._authentication(), **self.headers}
        options = {} if body is None else {"json": body}
        url = path.format(**self.values) + query
        return await ask(self.box.server, method or self.listing.method, url, headers=headers, **options)

    def _authentication(self) -> dict[str, str]:
        if not self.server:
            return self.session
        return {**token(), **(self.session if self.listing.name == "logout" else {})}

    async def configure(self, kind: str, **value: Any) -> None:
        await self.box.server.services.configs.put(
            "default", kind, "default", value, author="tests", origin=COMMAND
        )

    async def without_email(self) -> None:
        key = ConfigKey("default", "email", "default")
        await self.box.server.services.configs.delete(key, author="tests", origin=COMMAND)

    async def execute(self, statement: str, *values: Any) -> None:
        async with self.box.server.services.database.connection() as conn:
            await conn.execute(statement, *values)

    async def linked(self) -> dict[str, Any]:
        """Bind a player to the user, and return its proof."""
        body = player()
        assert (await self.call(body))[0] == 200
        return body


Cause = Callable[[Caller], Awaitable[Answer]]
CAUSES: dict[tuple[str, str], Cause] = {}
ADDRESS = "ada.lovelace@example.com"
BODIES: dict[str, Any] = {
    "login": {"email_code": {"email": ADDRESS, "verify_code": "123456"}},
    "signup": {"email_password": {"email": ADDRESS, "password": PASSWORD}},
    "detect": {"email": ADDRESS},
    "bind": {"android_games_service": {"player_id": "g1"}},
    "reauthorize": {"social_network_a": {"access_token": "x", "id": "1", "expiration_date": 0}},
    "send code": {"email": ADDRESS, "platform": "ios", "type": "login_email"},
    "send own code": {"platform": "ios"},
    "forgot password": {"email": ADDRESS, "platform": "website"},
    "reset password": {"random_code": "x" * 43, "password": NEW_PASSWORD},
    "change password": {"origin_password": PASSWORD, "password": NEW_PASSWORD},
    "bind email": {"email": ADDRESS, "platform": "android"},
    "change email": {"email": ADDRESS, "platform": "android"},
}
"""A valid body of each endpoint that has one."""


def causes(error: str, *names: str) -> Callable[[Cause], Cause]:
    """Declare what causes an error at the endpoints `names`, or at all others that list it."""

    def declare(cause: Cause) -> Cause:
        for each in LISTED:
            listed = error in each.errors and (each.name, error) not in IMPOSSIBLE
            if listed and (not names or each.name in names):
                CAUSES.setdefault((each.name, error), cause)
        return cause

    return declare


@causes("400 invalid_api_version")
async def of_another_version(caller: Caller) -> Answer:
    caller.headers = {"X-Service-Api-Version": "2"}
    return await caller.call(BODIES.get(caller.listing.name))


@causes("400 app_not_found")
async def of_an_unknown_app(caller: Caller) -> Answer:
    caller.headers = {"X-Service-App-Id": "none"}
    return await caller.call(BODIES.get(caller.listing.name))


@causes("405 method_not_allowed")
async def with_a_wrong_method(caller: Caller) -> Answer:
    return await caller.call(method="PATCH")


@causes("400 account.invalid_session")
async def with_an_ended_session(caller: Caller) -> Answer:
    """The S2S paths of accounts accept a session in place of a token."""
    caller.headers = {"X-Service-Session-Token": "st_ended"}
    path = caller.listing.server_path if caller.server else caller.listing.path
    body = BODIES.get(caller.listing.name)
    return await ask(
        caller.box.server,
        caller.listing.method,
        path.format(**caller.values),
        headers=caller.headers,
        **({} if body is None else {"json": body}),
    )


@causes("400 invalid_parameter", "get user", "verify", "unbind email")
async def with_an_encoded_body(caller: Caller) -> Answer:
    caller.headers = {"Content-Encoding": "gzip"}
    return await caller.call()


@causes("400 invalid_parameter")
async def with_a_list_as_body(caller: Caller) -> Answer:
    return await caller.call([])


@causes("417 config_invalid", "change password")
async def without_the_keys_of_signatures(caller: Caller) -> Answer:
    await caller.configure("auth", require_sign=True)
    return await caller.call(BODIES[caller.listing.name])


@causes("417 config_invalid", "verify")
async def by_a_link_of_an_app_without_emails(caller: Caller) -> Answer:
    query = await _verify_query(caller)
    await caller.without_email()
    return await caller.call(query=query)


@causes("500 config_invalid")
@causes("417 config_invalid")
async def of_an_app_without_emails(caller: Caller) -> Answer:
    await caller.without_email()
    return await caller.call(BODIES.get(caller.listing.name))


@causes("429 api_rate_limit", "verify")
async def with_many_wrong_links(caller: Caller) -> Answer:
    await caller.box.configure("limits", email_address={"count": 1, "per_s": 3600})
    caller.headers = {"X-Service-App-Id": "default"}
    await caller.call(query="?verify_code=x")
    return await caller.call(query="?verify_code=x")


@causes("429 api_rate_limit")
async def more_than_once_a_minute(caller: Caller) -> Answer:
    await caller.box.configure("limits", email_minute={"count": 1, "per_s": 60})
    body = await _for_own_address(caller)
    await caller.call(body)
    return await caller.call(body)


@causes("400 backend unavailable")
async def while_no_mail_can_be_stored(caller: Caller) -> Answer:
    body = await _for_own_address(caller)
    await caller.execute(FULL)
    return await caller.call(body)


async def _for_own_address(caller: Caller) -> dict[str, Any]:
    """Return a valid body that names the address of a new user, or leads to it."""
    address = await caller.be_signed_up()
    body: dict[str, Any] = BODIES[caller.listing.name]
    return {**body, "email": address} if "email" in body else body


@causes("502 gateway", "login", "bind", "reauthorize")
async def while_the_platform_does_not_answer(caller: Caller) -> Answer:
    server, platform = caller.box.server, "social_network_a"
    subject = str(uuid4().int)[:15]
    if caller.listing.name == "reauthorize":
        caller.values["id"] = subject
        own = await proof(server, platform, subject)
        assert (await caller.box.post("me/socialaccount", own, **caller.session))[0] == 200
    return await caller.call(await proof(server, platform, subject, fault="unavailable"))


@causes("400 anonymous_login_not_allowed")
async def with_a_device_that_the_app_does_not_accept(caller: Caller) -> Answer:
    await caller.configure("auth", **AUTH, anonymous_login=False)
    return await caller.call({"device": {"id": "d"}})


@causes("400 account.auth_failed", "login")
async def with_an_unknown_name(caller: Caller) -> Answer:
    return await caller.call({"name_password": {"name": uuid4().hex, "password": PASSWORD}})


@causes("400 account.sp_auth_failed")
async def with_a_token_that_the_platform_refuses(caller: Caller) -> Answer:
    return await caller.call({"microblog": {"access_token": uuid4().hex}})


@causes("400 account.deactivate_pending_user")
async def of_a_frozen_user(caller: Caller) -> Answer:
    device = uuid4().hex
    uid, _ = await caller.box.server.login(device)
    freeze = "update users set status = 'frozen', freeze_time = now(), close_time = now() where uid = $1"
    await caller.execute(freeze, uid)
    return await caller.call({"device": {"id": device}})


@causes("404 not_found")
async def of_a_user_that_does_not_exist(caller: Caller) -> Answer:
    assert (await caller.call())[0] == 200  # The session is in the cache from now on.
    await caller.execute("update users set status = 'deactivated' where uid = $1", caller.values["user_id"])
    return await caller.call()


@causes("400 account.email_invalid")
async def with_no_address(caller: Caller) -> Answer:
    return await caller.call({"email": "ada"})


@causes("400 account.email_login_not_allowed")
async def of_an_app_without_addresses(caller: Caller) -> Answer:
    await caller.without_email()
    return await caller.call(BODIES["detect"])


@causes("400 account.sp_linked_platform")
async def with_an_own_identity(caller: Caller) -> Answer:
    return await caller.call(await caller.linked())


@causes("400 account.sp_linked_another")
async def with_an_identity_of_another(caller: Caller) -> Answer:
    body = await caller.linked()
    await caller.be_new_user()
    return await caller.call(body)


async def _verify_query(caller: Caller) -> str:
    address = await caller.be_signed_up()
    return "?" + link_in(await caller.box.mail(address)).partition("?")[2]


async def _coded(caller: Caller, code: str | None, *, late: bool = False) -> Answer:
    """Call the endpoint with a code; with `late`, with one that has expired. `code`: a wrong one, or none."""
    name, box, address = caller.listing.name, caller.box, new_address()
    if name == "verify":
        query = await _verify_query(caller) if late else "" if code is None else f"?verify_code={code}"
        await box.later(86_400 * 8 if late else 0)
        return await caller.call(query=query)
    if name == "reset password":
        code = await box.reset_code(await caller.be_signed_up(), nth=2) if late else code
        await box.later(86_400 if late else 0)
        return await caller.call({"random_code": code, "password": NEW_PASSWORD})
    code = await box.code(address) if late else code
    await box.later(601 if late else 0)
    given = {"email": address, "verify_code": code}
    return await caller.call({"email_code": given} if name == "login" else {**given, "platform": "ios"})


@causes("400 account.code_empty")
async def without_a_code(caller: Caller) -> Answer:
    return await _coded(caller, None)


@causes("400 account.code_invalid")
async def with_a_wrong_code(caller: Caller) -> Answer:
    return await _coded(caller, "000000")


@causes("400 account.code_out_of_date")
async def with_an_old_code(caller: Caller) -> Answer:
    return await _coded(caller, None, late=True)


@causes("400 account.email_already_exists")
async def with_the_address_of_another(caller: Caller) -> Answer:
    taken = await caller.be_signed_up()
    await caller.be_new_user()
    code = await caller.box.code(taken, nth=2)
    return await caller.call({"email": taken, "platform": "ios", "verify_code": code})


@causes("400 account.user_already_bound_email")
async def with_a_second_address(caller: Caller) -> Answer:
    await caller.be_signed_up()
    second = new_address()
    code = await caller.box.code(second)
    return await caller.call({"email": second, "platform": "ios", "verify_code": code})


@causes("400 account.email_not_found")
async def of_a_user_without_an_address(caller: Caller) -> Answer:
    return await caller.call(BODIES.get(caller.listing.name))


@causes("400 account.sp_link_may_cause_ghost")
async def of_the_only_way_to_log_in(caller: Caller) -> Answer:
    await caller.be_signed_up()
    return await caller.call()


@pytest.fixture(scope="module")
async def testbed(databases, tmp_path_factory):
    async with open_mailbox(databases, tmp_path_factory.mktemp("data")) as box:
        yield box


async def restore(box: Mailbox) -> None:
    """Undo what causes have changed."""
    await box.configure("auth", **AUTH)
    await box.configure("email", **EMAIL)
    await box.configure("limits")
    await box.server.services.clock.move("default", offset_s=0)
    async with box.server.services.database.connection() as conn:
        await conn.execute("drop function if exists full_disk() cascade")


@pytest.mark.parametrize("server", [False, True], ids=["client", "server"])
@pytest.mark.parametrize("listing", LISTED, ids=lambda listing: listing.name)
async def test_each_listed_error_is_answered(testbed: Mailbox, listing: Listing, server: bool):
    wrong = []
    for error in sorted(listing.errors) if (listing.server_path if server else listing.path) else ():
        if (listing.name, error) in IMPOSSIBLE:
            continue
        await restore(testbed)
        caller = Caller(testbed, listing, server)
        await caller.be_new_user()
        status, reply = await CAUSES[listing.name, error](caller)
        found = f"{status} {reply['error']['error_type'] if reply and 'error' in reply else reply}"
        if found != error:
            wrong.append((error, found, reply))
    assert wrong == []


def test_the_table_covers_exactly_what_the_interface_lists():
    listed = {(each.name, error) for each in LISTED for error in each.errors}
    assert CAUSES.keys() | IMPOSSIBLE.keys() == listed
    assert not CAUSES.keys() & IMPOSSIBLE.keys()


def test_the_route_table_lists_the_same_errors():
    rows = {(row.method, path): row for row in ACCOUNT_ROUTES for path in row.paths}
    for each in LISTED:
        for path in filter(None, (each.path, each.server_path)):
            row = rows[each.method, path]
            documented = {f"{status_of(of, row.area.statuses)} {of.error_type}" for of in errors_of(row, path)}
            impossible = {error for name, error in IMPOSSIBLE if name == each.name and not IMPOSSIBLE[name, error]}
            # A wrong method is refused before there is a row.
            assert each.errors - documented - {"405 method_not_allowed"} == impossible, (each.method, path)
