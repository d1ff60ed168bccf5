"""Every response of an endpoint that sends codes or checks links says how many of them remain (§4.7)."""

from typing import Any

import pytest

from storage.operators.audit import COMMAND
from tests.app.accounts.people import new_user
from tests.running.servers import Server

POLICY, UNUSED, ONCE = '"email_address";q=4;w=3600', '"email_address";r=4;t=0', '"email_address";r=3;t=900'
CODE = {"email": "ada@example.com", "platform": "ios", "type": "login_email"}


@pytest.fixture
async def server(shared_server: Server) -> Server:
    configs = shared_server.services.configs
    rates = {"rates": {"email_address": {"count": 4, "per_s": 3600}}}
    await configs.put("default", "limits", "default", rates, author="tests", origin=COMMAND)
    email = {"mail_accounts": ["inbox"], "code_login": True}
    await configs.put("default", "email", "default", email, author="tests", origin=COMMAND)
    return shared_server


async def counts(server: Server, request: str, session: dict[str, str], **body: Any) -> tuple[int, str, str]:
    """Return the status, and the rates and remaining calls by client address."""
    method, path = request.split()
    url = f"{server.url}/bp/user/{path}"
    async with server.http.request(method, url, headers=session, **body) as response:
        headers = [response.headers.get(name, "").split(", ") for name in ("RateLimit-Policy", "RateLimit")]
        policy, remaining = (
            next(rate for rate in rates if rate.startswith('"email_address"')) for rates in headers
        )
        return response.status, policy, remaining


@pytest.mark.parametrize(
    ("request_line", "body", "status"),
    [
        ("POST send_email_verify_code", {}, 400),
        ("POST send_email_verify_code", CODE | {"type": "sign_up_email"}, 417),
        ("POST send_phone_verify_code", {}, 400),
        ("POST email/forgot_password", {}, 400),
        ("POST me/email/send_verify_code", {}, 400),
        ("POST me/email/send_verify_code", {"platform": "ios"}, 400),
        ("POST me/email", {}, 400),
        ("POST me/email", {"email": "ada@example.com", "platform": "ios", "verify_code": "123456"}, 400),
        ("PUT me/email", {}, 400),
        ("PUT me/email", {"email": "ada@example.com", "platform": "ios"}, 400),
        ("GET email/verify", None, 400),
    ],
)
async def test_refused_requests_say_how_many_codes_remain(
    server: Server, request_line: str, body: dict[str, Any] | None, status: int
):
    _, session = await new_user(server)
    for _ in range(2):
        given = {} if body is None else {"json": body}
        assert await counts(server, request_line, session, **given) == (status, POLICY, UNUSED)


@pytest.mark.parametrize("request_line", ["POST send_email_verify_code", "GET email/verify?verify_code=x"])
async def test_what_was_counted_is_said_once(server: Server, request_line: str):
    is_code = request_line.startswith("POST")
    given = {"json": CODE} if is_code else {}
    assert await counts(server, request_line, {}, **given) == (200 if is_code else 400, POLICY, ONCE)


async def test_codes_and_wrong_links_are_counted_apart(server: Server):
    await counts(server, "POST send_email_verify_code", {}, json=CODE)
    assert await counts(server, "GET email/verify", {}) == (400, POLICY, UNUSED)
    assert await counts(server, "POST email/forgot_password", {}, json={}) == (400, POLICY, ONCE)
