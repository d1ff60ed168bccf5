"""Each field, error and status of the email endpoints (§4.7), over HTTP."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp import ClientSession, TCPConnector

from storage.configs.kinds.email import EMAIL as EMAIL_KIND
from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from tests.app.accounts.email.mailbox import (
    NEW_PASSWORD,
    PASSWORD,
    Mailbox,
    link_in,
    new_address,
    new_owner,
    refusal,
    session_of,
)
from tests.app.accounts.people import new_user

EMAIL = "ada.lovelace@example.com"
SEND = {"email": EMAIL, "platform": "ios", "type": "login_email"}
FORGOT = {"email": EMAIL, "platform": "website"}
RESET = {"random_code": "x" * 43, "password": NEW_PASSWORD}
BIND = {"email": EMAIL, "platform": "android"}
LOGIN = {"email_password": {"email": EMAIL, "password": PASSWORD}}
CODE_LOGIN = {"email_code": {"email": EMAIL, "verify_code": "123456"}}


@dataclass(frozen=True)
class Case:
    """A request, and the status and the error that it gets."""

    method: str
    path: str
    body: Any
    status: int
    error: str
    config: dict[str, Any] | None = field(default_factory=dict)
    """The config of kind `email`; `None`: there is none."""
    message: str = ""
    """What the message contains."""

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.status} {self.error} {self.message}"


def case(request: str, body: Any, expected: str, message: str = "", **config: Any) -> Case:
    method, path = request.split(" ")
    status, error = expected.split(" ")
    value = None if config.get("missing") else {"code_login": True, "activation": True, **config}
    return Case(method, path, body, int(status), error, value, message)


def without(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != name}


SEND_PATH, FORGOT_PATH = "POST send_email_verify_code", "POST email/forgot_password"
RESET_PATH, VERIFY_PATH = "POST email/reset_password", "GET email/verify"
BIND_PATH, CHANGE_PATH, OWN_PATH = "POST me/email", "PUT me/email", "POST me/email/send_verify_code"
INVALID = "400 invalid_parameter"
UNCONFIGURED = "417 config_invalid"
CASES = [
    *(
        case(path, without(body, name), INVALID, f"{name} is required")
        for path, body, names in (
            (SEND_PATH, SEND, ("email", "platform", "type")),
            (FORGOT_PATH, FORGOT, ("email", "platform")),
            (RESET_PATH, RESET, ("password",)),
            (BIND_PATH, BIND, ("email", "platform")),
            (CHANGE_PATH, BIND, ("email", "platform")),
            (OWN_PATH, {"platform": "ios"}, ("platform",)),
        )
        for name in names
    ),
    *(
        case(path, body | {name: value}, INVALID, name)
        for path, body in ((SEND_PATH, SEND), (FORGOT_PATH, FORGOT), (BIND_PATH, BIND), (CHANGE_PATH, BIND))
        for name, value in (
            ("email", 7),
            ("email", ""),
            ("email", "ada"),
            ("email", "ada@"),
            ("email", "ada@example.com, eve@example.com"),
            ("email", "ada@example.com\r\nBcc: eve@example.com"),
            ("email", f"{'a' * 300}@example.com"),
            ("platform", "windows"),
        )
    ),
    case(SEND_PATH, SEND | {"type": "reset"}, INVALID, "type"),
    case(SEND_PATH, SEND | {"custom_variables": [1]}, INVALID, "custom_variables must be an object"),
    case(SEND_PATH, SEND | {"custom_variables": {"x": "y" * 9000}}, INVALID, "custom_variables"),
    case(FORGOT_PATH, FORGOT | {"custom_variables": "x"}, INVALID, "custom_variables must be an object"),
    case(SEND_PATH, SEND, UNCONFIGURED, "code_login", code_login=False),
    case(SEND_PATH, SEND | {"type": "sign_up_email"}, UNCONFIGURED, "sign_up_verification"),
    *(
        case(path, body, UNCONFIGURED, "", **config)
        for path, body in (
            (SEND_PATH, SEND),
            (FORGOT_PATH, FORGOT),
            (RESET_PATH, RESET),
            (BIND_PATH, BIND),
            (CHANGE_PATH, BIND),
            (OWN_PATH, {"platform": "ios"}),
            ("GET me/email/verify_result", None),
            ("POST login", LOGIN),
            ("POST login", CODE_LOGIN),
        )
        for config in ({"missing": True}, {"enabled": False})
    ),
    case(SEND_PATH, SEND, UNCONFIGURED, "mail_accounts is empty", mail_accounts=[]),
    case(FORGOT_PATH, FORGOT, UNCONFIGURED, "mail_accounts nowhere", mail_accounts=["nowhere"]),
    case("POST login", CODE_LOGIN, UNCONFIGURED, "code_login", code_login=False),
    case("POST login", {"email_code": {"email": EMAIL}}, "400 account.code_empty", "email_code.verify_code"),
    case("POST login", {"email_code": {"email": "x", "verify_code": "1"}}, INVALID, "email_code.email"),
    case("POST login", {"email_password": {"email": "x", "password": PASSWORD}}, INVALID, "email_password.email"),
    case("POST login", LOGIN | CODE_LOGIN, INVALID, "exactly one platform"),
    case("POST login", LOGIN, "400 account.auth_failed"),
    case("POST signup", {"email_password": {"email": EMAIL, "password": "password"}}, INVALID, "common password"),
    case("POST signup", {"email_password": {"email": "x", "password": PASSWORD}}, INVALID, "email_password.email"),
    case("POST signup", {"email_password": LOGIN["email_password"] | {"platform": "fax"}}, INVALID, "platform"),
    case("POST detect", {}, INVALID, "email is required"),
    case(f"{VERIFY_PATH}?verify_code=%20", None, "400 account.code_empty"),
    case(RESET_PATH, RESET | {"email": "x"}, INVALID, "email must be an email address"),
    case(OWN_PATH, {"platform": "ios"}, INVALID, "the user has no email address"),
]


async def test_each_wrong_request_has_its_error(box: Mailbox):
    _, session = await new_user(box.server)
    wrong = []
    for case in sorted(CASES, key=lambda case: repr(case.config)):
        if case.config is None:
            key, configs = ConfigKey("default", "email", "default"), box.server.services.configs
            if configs.exists(EMAIL_KIND, "default"):
                await configs.delete(key, author="tests", origin=COMMAND)
        else:
            await box.configure(**case.config)
        headers = session if case.path.startswith("me/") else {}
        status, reply = await box.post(case.path, case.body, case.method, **headers)
        found = (status, reply and reply["error"]["error_type"])
        if found != (case.status, case.error) or case.message not in reply["error"]["message"]:
            wrong.append((str(case), status, reply))
    assert wrong == []


async def test_endpoints_of_a_user_need_a_session(box: Mailbox):
    for request in (BIND_PATH, CHANGE_PATH, OWN_PATH, "DELETE me/email", "GET me/email/verify_result"):
        method, path = request.split(" ")
        body = BIND if method in {"POST", "PUT"} else None
        assert refusal(await box.post(path, body, method)) == (400, "account.invalid_session")


async def test_a_code_for_another_address_is_refused(box: Mailbox):
    address = new_address()
    session = session_of(await box.sign_up(address))
    link = link_in(await box.mail(address))
    query = link.partition("?")[2]
    assert refusal(await box.get(f"/bp/user/email/verify?{query}&email={new_address()}")) == (
        400,
        "account.code_invalid",
    )
    assert refusal(await box.get(f"/bp/user/email/verify?{query}&email=x")) == (400, "invalid_parameter")
    assert await box.get(f"/bp/user/email/verify?{query}&email={address.upper()}") == (200, {})
    again = await box.post("me/email/send_verify_code", {"platform": "ios"}, **session)
    assert refusal(again) == (400, "invalid_parameter")
    code = await box.reset_code(address, nth=2)
    body = {"random_code": code, "password": NEW_PASSWORD}
    assert refusal(await box.post("email/reset_password", body | {"email": new_address()})) == (
        400,
        "account.code_invalid",
    )
    assert refusal(await box.post("email/reset_password", body | {"password": "password"})) == (
        400,
        "invalid_parameter",
    )
    assert await box.post("email/reset_password", body | {"email": address}) == (200, None)
    assert refusal(await box.post("email/reset_password", body)) == (400, "account.code_invalid")


async def test_links_expire(box: Mailbox):
    address = new_address()
    await box.sign_up(address)
    query = link_in(await box.mail(address)).partition("?")[2]
    code = await box.reset_code(address, nth=2)
    await box.later(3601)
    body = {"random_code": code, "password": NEW_PASSWORD}
    assert refusal(await box.post("email/reset_password", body)) == (400, "account.code_out_of_date")
    await box.later(86_400)
    assert refusal(await box.get(f"/bp/user/email/verify?{query}")) == (400, "account.code_out_of_date")


async def test_a_newer_link_to_a_new_password_replaces_the_older_one(box: Mailbox):
    address = new_address()
    await box.sign_up(address)
    older = await box.reset_code(address, nth=2)
    newer = await box.reset_code(address, nth=3)
    body = {"password": NEW_PASSWORD}
    assert refusal(await box.post("email/reset_password", body | {"random_code": older})) == (
        400,
        "account.code_out_of_date",
    )
    assert await box.post("email/reset_password", body | {"random_code": newer}) == (200, None)


@pytest.mark.parametrize(
    ("app", "client"), [({"X-Service-App-Id": "default"}, "127.11.12.13"), ({}, "127.11.12.14")]
)
async def test_wrong_codes_of_links_are_limited_but_right_ones_are_not(
    box: Mailbox, app: dict[str, str], client: str
):
    address = new_address()
    await box.sign_up(address)
    link = "/" + link_in(await box.mail(address)).split("/", 3)[3]
    try:
        await box.configure("limits", email_address={"count": 2, "per_s": 3600})
        path = "/bp/user/email/verify?verify_code=x"
        async with ClientSession(connector=TCPConnector(local_addr=(client, 0))) as http:
            other = Mailbox(replace(box.server, http=http))
            found = [refusal(await other.get(path, headers=app))[0] for _ in range(4)]
            assert found == [400, 400, 429, 429]
            assert await other.get(link, headers=app) == (200, {})
    finally:
        await box.configure("limits")


async def test_no_mail_and_no_secret_is_in_a_job_that_waits(box: Mailbox):
    services = box.server.services
    async with services.database.connection() as conn:
        await conn.execute("create table seen as select args::text from procrastinate_jobs where false")
        await conn.execute(
            "create function see() returns trigger language plpgsql as"
            " 'begin insert into seen values (new.args::text); return new; end'"
        )
        await conn.execute(
            "create trigger see after insert on procrastinate_jobs for each row execute function see()"
        )
        address = new_address()
        code = await box.code(address)
        await conn.execute("drop trigger see on procrastinate_jobs")
        seen = [row["args"] for row in await conn.fetch("select args from seen")]
    assert seen
    assert not any(address in text or code in text for text in seen)


async def test_a_change_is_limited_by_the_address_that_is_told(box: Mailbox):
    address, session = await new_owner(box)
    try:
        await box.configure("limits", email_minute={"count": 1, "per_s": 3600})
        changes = [
            await box.post("me/email", {"email": new_address(), "platform": "ios"}, "PUT", **session)
            for _ in range(3)
        ]
    finally:
        await box.configure("limits")
    assert [status for status, _ in changes] == [200, 429, 429]
    await box.all_sent()
    assert len(await box.mails(address)) == 2


async def test_the_link_of_a_sign_up_counts_against_the_limits_of_its_address(box: Mailbox):
    address, told = new_address(), new_address()
    _, session = await new_owner(box)
    try:
        await box.configure("limits", email_minute={"count": 1, "per_s": 3600})
        mine = session_of(await box.sign_up(address))
        again = await box.post("me/email/send_verify_code", {"platform": "ios"}, **mine)
        assert refusal(again) == (429, "api_rate_limit")
        assert refusal(await box.sign_up(address)) == (400, "account.email_already_exists")
        assert await box.post("me/email", {"email": told, "platform": "ios"}, "PUT", **session) == (200, None)
        status, reply = await box.sign_up(told)
        assert (status, 3590 <= reply["next_mail_s"] <= 3600) == (200, True)
    finally:
        await box.configure("limits")
    await box.all_sent()
    assert len(await box.mails(told)) == 1, "that of the change"
