"""Operators sign in to the console with their token and a code. The admin API accepts the cookie of the session."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from app.admin.console_sessions import CODES
from app.dev.console import console_link
from app.http.callers.caller import Access
from app.http.callers.operators import FAILURES
from app.routes import ROUTES
from storage.operators import totp
from storage.operators.operators import Role
from storage.secrets import Keyring
from tests.calendar.clock import epoch_s
from tests.running.servers import Databases, Server, new_server

ROWS = [row for row in ROUTES if row.area.access is Access.ADMIN]
ORDER = [Role.VIEWER, Role.EDITOR, Role.ADMIN]
SESSION = "/admin/api/session"
SELF = "/admin/api/self"
ENDED = (401, "auth_failed: the session has ended: sign in again")
CROSS_SITE = (403, "permission_denied: X-Parley-Csrf is missing or wrong")
MISSING = (401, "auth_failed: Authorization is missing or wrong")
LIMITED = (429, "api_rate_limit: too many failed calls from this address")
REFUSED = (401, "auth_failed: the code is wrong or was used before")


@pytest.fixture
async def server(databases: Databases, tmp_path: Path) -> AsyncIterator[Server]:
    async with new_server(databases, tmp_path) as running:
        yield running


@dataclass(frozen=True)
class Browser:
    """A page of the console, with the cookie of its session."""

    server: Server
    cookie: str = ""
    csrf: str = ""

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, str]:
        given = {"X-Parley-Csrf": self.csrf, "Cookie": self.cookie, **headers}
        given = {name.replace("_", "-"): text for name, text in given.items() if text}
        async with self.server.http.request(method, self.server.url + path, json=body, headers=given) as response:
            is_json = response.content_type == "application/json" and await response.read()
            answer = await response.json() if is_json else None
            return response.status, answer, response.headers.get("Set-Cookie", "")

    async def refusal(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
        status, answer, _ = await self.ask(method, path, body, **headers)
        return status, answer["error"]["message"]

    def with_session(self, answer: Any, set_cookie: str) -> "Browser":
        return replace(self, cookie=set_cookie.partition(";")[0], csrf=answer["csrf"])


def code_of(secret: str, *, later: int = 0) -> str:
    return totp.code_at(secret, int(epoch_s()) // totp.STEP_S + later)


async def add(server: Server, name: str, role: str) -> str:
    status, answer = await admin(server, "POST", "/admin/api/operators", {"name": name, "role": role})
    assert status == 200, answer
    token: str = answer["token"]
    return token


async def admin(server: Server, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    token = server.services.settings.admin_token.get_secret_value()
    headers = {"Authorization": f"Bearer {token}", "X-Parley-Reason": "a test"}
    async with server.http.request(method, server.url + path, json=body, headers=headers) as response:
        return response.status, await response.json()


async def enrol(server: Server, token: str) -> tuple[Browser, str]:
    """Sign in for the first time. Return the page and the secret of the authenticator."""
    page = Browser(server, csrf="sign-in")
    status, answer, _ = await page.ask("POST", SESSION, {"token": token})
    assert (status, answer["state"]) == (200, "needs_authenticator")
    secret = answer["authenticator"]["secret"]
    status, answer, cookie = await page.ask("POST", SESSION, {"token": token, "code": code_of(secret)})
    assert (status, answer["state"]) == (200, "signed_in")
    return page.with_session(answer, cookie), secret


async def sql(server: Server, statement: str) -> Any:
    async with server.services.database.connection() as conn:
        return await conn.fetchval(statement)


@pytest.mark.parametrize(
    ("at_s", "code"),
    [(59, "287082"), (1_111_111_109, "081804"), (1_234_567_890, "005924"), (20_000_000_000, "353130")],
)
def test_codes_are_those_of_rfc_6238(at_s: int, code: str) -> None:
    assert totp.code_at("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", at_s // 30) == code


async def test_each_row_admits_the_roles_that_include_its_own_and_changes_only_with_the_csrf_token(
    server: Server,
) -> None:
    pages = {role: (await enrol(server, await add(server, f"the-{role}", role)))[0] for role in ORDER}
    for row in ROWS:
        if row.path == SESSION:
            continue  # It ends the session.
        assert row.area.role is not None
        path = re.sub(r"\{\w+\}", "none", row.path)
        for role, page in pages.items():
            if row.method != "GET":
                for wrong in ("", "x", pages[Role.VIEWER if role is Role.ADMIN else Role.ADMIN].csrf):
                    assert await replace(page, csrf=wrong).refusal(row.method, path, {}) == CROSS_SITE, path
            assert (await replace(page, cookie="").refusal(row.method, path, {})) == MISSING, path
            if row.path.endswith("/events"):
                continue  # The response lasts.
            status, answer, _ = await page.ask(row.method, path, {})
            if ORDER.index(role) >= ORDER.index(row.area.role):
                assert status in {200, 400, 404}, (row.method, path, role, answer)
            else:
                message = f"permission_denied: this requires the role {row.area.role}"
                assert (status, answer["error"]["message"]) == (403, message), path


async def test_the_cookie_is_for_this_host_and_not_for_scripts_or_other_sites(server: Server) -> None:
    token = await add(server, "ada", "viewer")
    page = Browser(server, csrf="sign-in")
    _, answer, _ = await page.ask("POST", SESSION, {"token": token})
    assert answer["authenticator"]["uri"].startswith("otpauth://totp/Parley:ada?secret=")
    shown = answer["authenticator"]["secret"]
    body = {"token": token, "code": code_of(shown)}
    assert await replace(page, csrf="").refusal("POST", SESSION, body) == CROSS_SITE
    assert await page.refusal("POST", SESSION, body, Sec_Fetch_Site="cross-site") == CROSS_SITE
    _, _, cookie = await page.ask("POST", SESSION, body, Sec_Fetch_Site="same-origin")
    assert re.fullmatch(
        r"parley_console=parley_cs_\w{49}; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict", cookie
    )
    stored = await sql(server, "select string_agg(s::text, '') from operator_sessions s")
    assert cookie.partition(";")[0].partition("=")[2] not in stored
    secret = await sql(server, "select totp_secret from operators where name = 'ada'")
    assert shown
    assert shown not in secret


async def test_a_code_is_used_once_and_the_secret_is_not_shown_again(server: Server) -> None:
    token = await add(server, "ada", "viewer")
    _, secret = await enrol(server, token)
    page = Browser(server, csrf="sign-in")

    assert (await page.ask("POST", SESSION, {"token": token}))[1] == {"state": "needs_code"}
    for code in (code_of(secret), "000000", "", code_of(secret, later=5)):
        assert await page.refusal("POST", SESSION, {"token": token, "code": code}) == REFUSED
    code = code_of(secret, later=1)
    typed = f"\u200e{''.join(chr(0xFF10 + int(digit)) for digit in code[:3])}\u00a0\u2011{code[3:]}\ufeff"
    status, _, _ = await page.ask("POST", SESSION, {"token": token, "code": typed})
    assert status == 200


async def test_an_authenticator_that_a_lost_master_key_has_encrypted_is_set_up_again_with_a_new_token(
    server: Server,
) -> None:
    token = await add(server, "ada", "viewer")
    await enrol(server, token)
    foreign = Keyring.from_hex("ab" * 32).encrypt("a secret", aad="operators/ada/totp")
    await sql(server, f"update operators set totp_secret = '{foreign}', totp_step = totp_step - 9")
    status, message = await Browser(server, csrf="sign-in").refusal("POST", SESSION, {"token": token})
    assert status == 422
    assert "rotate the operator's token" in message
    _, rotated = await admin(server, "POST", "/admin/api/operators/ada/rotate", {})
    await enrol(server, rotated["token"])


async def test_wrong_codes_are_limited_per_operator_and_right_ones_are_not_counted(server: Server) -> None:
    token, other = await add(server, "ada", "viewer"), await add(server, "bob", "viewer")
    _, secret = await enrol(server, token)
    page = Browser(server, csrf="sign-in")
    for _ in range(CODES.count):
        assert await page.refusal("POST", SESSION, {"token": token, "code": "000000"}) == REFUSED
    status, message = await page.refusal("POST", SESSION, {"token": token, "code": code_of(secret, later=1)})
    assert (status, message) == (429, "api_rate_limit: too many codes of this operator")
    await enrol(server, other)


async def test_a_session_keeps_its_token_and_another_sign_in_ends_it(server: Server) -> None:
    token = await add(server, "ada", "editor")
    page, secret = await enrol(server, token)
    chosen = replace(page, cookie="parley_console=parley_cs_chosen-by-an-attacker")
    body = {"token": token, "code": code_of(secret, later=1)}
    _, answer, cookie = await replace(chosen, csrf="x").ask("POST", SESSION, body)
    assert "chosen" not in cookie
    assert await chosen.refusal("GET", SELF) == ENDED
    again = page.with_session(answer, cookie)
    assert (await again.ask("GET", SELF))[1]["csrf"] == again.csrf != page.csrf
    assert (await page.ask("GET", SELF))[0] == 200


async def test_signing_out_ends_the_session(server: Server) -> None:
    page, _ = await enrol(server, await add(server, "ada", "viewer"))
    assert await replace(page, csrf="").refusal("DELETE", SESSION) == CROSS_SITE
    status, _, cookie = await page.ask("DELETE", SESSION)
    assert (status, "Max-Age=0" in cookie) == (200, True)
    assert await page.refusal("GET", SELF) == ENDED


@pytest.mark.parametrize("change", ["role", "rotate", "remove", "expire", "idle", "old"])
async def test_a_session_ends_with_what_it_depends_on(server: Server, change: str) -> None:
    page, _ = await enrol(server, await add(server, "ada", "editor"))
    ada = "/admin/api/operators/ada"
    match change:
        case "role":
            assert (await admin(server, "PUT", ada, {"role": "viewer"}))[0] == 200
        case "rotate":
            assert (await admin(server, "POST", f"{ada}/rotate", {}))[0] == 200
        case "remove":
            assert (await admin(server, "DELETE", ada))[0] == 200
        case "expire":
            await sql(server, "update operators set expires_at = now() - interval '1 second'")
        case "idle":
            await sql(server, "update operator_sessions set used_at = now() - interval '61 minutes'")
        case "old":
            await sql(server, "update operator_sessions set created_at = now() - interval '721 minutes'")
    expired = (401, "auth_failed: the token in Authorization has expired")
    assert await page.refusal("GET", SELF) == (expired if change == "expire" else ENDED)


async def test_pages_whose_session_has_ended_do_not_use_up_what_their_address_may_guess(server: Server) -> None:
    ended, _ = await enrol(server, await add(server, "ada", "viewer"))
    assert (await ended.ask("DELETE", SESSION))[0] == 200
    for cookie in (ended.cookie, "parley_console=x"):
        for _ in range(FAILURES.count // 2 + 1):
            assert await replace(ended, cookie=cookie).refusal("GET", SELF) == ENDED
    assert (await admin(server, "GET", SELF))[0] == 200
    for _ in range(FAILURES.count):
        assert await ended.refusal("GET", SELF, Authorization="Bearer wrong") == MISSING
    assert await ended.refusal("GET", SELF, Authorization="Bearer wrong") == LIMITED
    assert await ended.refusal("GET", SELF) == ENDED


async def test_calls_in_the_background_do_not_keep_a_session_from_ending(server: Server) -> None:
    page, _ = await enrol(server, await add(server, "ada", "viewer"))
    await sql(server, "update operator_sessions set used_at = now() - interval '50 minutes'")
    age = "select round(extract(epoch from now() - used_at) / 60)::int from operator_sessions"
    await page.ask("GET", SELF, X_Parley_Background="1")
    assert await sql(server, age) == 50
    await page.ask("GET", SELF)
    assert await sql(server, age) == 0


async def test_an_authorization_header_takes_precedence_over_the_cookie(server: Server) -> None:
    page, _ = await enrol(server, await add(server, "ada", "viewer"))
    assert await page.refusal("GET", SELF, Authorization="Bearer wrong") == MISSING


async def test_the_link_of_make_run_signs_in_once(server: Server) -> None:
    page = Browser(server, csrf="sign-in")
    code = URL(console_link(server.services.keyring)).fragment.removeprefix("link=")
    _, answer, cookie = await page.ask("POST", "/dev/console/session", {"code": code})
    assert (await page.with_session(answer, cookie).ask("GET", SELF))[1]["actor"] == "developer"
    for wrong in (code, code[:-1], "", "1.2.3"):
        status, _ = await page.refusal("POST", "/dev/console/session", {"code": wrong})
        assert status == 401


async def test_production_serves_the_console_only_if_it_is_on(databases: Databases, tmp_path: Path) -> None:
    for console, status in ((None, 404), (True, 200)):
        changes = {"env": "production", "console": console, "public_url": "https://parley.example"}
        async with new_server(databases, tmp_path / str(status), **changes) as server:
            running = replace(server, url=f"http://127.0.0.1:{server.services.settings.port}")
            async with running.http.get(f"{running.url}/console") as response:
                assert response.status == status
            assert (await Browser(running).ask("POST", "/dev/console/session", {}))[0] == 404
            if console:
                page, _ = await enrol(running, await add(running, "ada", "viewer"))
                assert page.cookie.startswith("__Host-parley_console=")
            else:
                assert (await Browser(running).ask("POST", SESSION, {}))[0] == 404
