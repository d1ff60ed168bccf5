"""The sign-ins that a developer chooses: proofs by the sandbox, and what clients get for each fault."""

from typing import Any
from uuid import uuid4

import pytest

from storage.configs.kinds.sign_in import PLATFORMS
from storage.operators.audit import COMMAND
from tests.app.callers import ask
from tests.app.sandbox_server import module_server, server, testbed
from tests.running.servers import Server, new_server
from vendors.sandbox.server import SIGN_IN
from vendors.sandbox.signin.choices import PROVIDERS

__all__ = ["module_server", "server", "testbed"]

FIELDS = {
    "ios_vendor_id": {"id", "code", "identity_token"},
    "social_network_a": {"access_token", "id", "expiration_date"},
    "search_vendor_id": {"id_token"},
    "photo_network": {"code"},
    "microblog": {"access_token"},
    "chat_network": {"access_token"},
    "im_network_a": {"access_token", "open_id"},
    "im_network_b": {"code"},
    "payment_wallet_a": {"code"},
    "software_vendor_id": {"access_token"},
    "retail_platform": {"code"},
    "ios_games_service": {"player_id", "team_player_id", "public_key_url", "salt", "signature", "timestamp"},
}
"""The fields that clients send to each platform (§2.2)."""
EMULATED = tuple(platform for platform in PLATFORMS if platform != "android_games_service")
REFUSED = {"refused", "expired", "other_app", "unsigned"}
"""The faults of a proof. All others are failures of the platform."""
BROWSER = {"Accept": "text/html"}


async def choices(server: Server, app_id: str = "default") -> dict[str, Any]:
    status, reply = await ask(server, "GET", "/dev/accounts/platforms", params={"app": app_id})
    assert status == 200, reply
    return reply


async def issue(server: Server, platform: str, *, app_id: str = "default", **choice: Any) -> tuple[int, Any]:
    path = f"/dev/accounts/{platform}/_issue"
    return await ask(server, "POST", path, params={"app": app_id}, json=choice)


async def log_in(server: Server, body: Any) -> tuple[int, Any]:
    return await ask(server, "POST", "/bp/user/login", json=body)


def error_of(result: tuple[int, Any]) -> tuple[int, str]:
    status, reply = result
    return status, reply["error"]["error_type"]


async def test_everybody_can_sign_in_at_every_platform(server: Server) -> None:
    offered = await choices(server)
    usable = [platform for platform, offer in offered["platforms"].items() if not offer["problem"]]
    assert usable == [*EMULATED]
    assert [person["profile"]["email_verified"] for person in offered["people"]] == [True, False, True]
    [mei, jonas, _] = offered["people"]
    for platform in EMULATED:
        for person, is_new in ((mei, True), (mei, False), (jonas, True)):
            status, body = await issue(server, platform, **person)
            assert (status, list(body)) == (200, [platform])
            assert set(body[platform]) == FIELDS[platform]
            status, reply = await log_in(server, body)
            assert (status, reply["user"]["is_new_user"]) == (200, is_new), platform


@pytest.mark.parametrize("platform", EMULATED)
async def test_each_fault_is_answered_with_its_error(server: Server, platform: str) -> None:
    faults = (await choices(server))["platforms"][platform]["faults"]
    assert REFUSED & set(faults) >= {"refused", "expired", "other_app"}
    for name, fields in faults.items():
        if name == "timeout":  # It takes 5 s. The test below has it for one platform.
            continue
        _, body = await issue(server, platform, subject="100000000000000007", **fields)
        expected = (400, "account.sp_auth_failed") if name in REFUSED else (502, "gateway")
        assert error_of(await log_in(server, body)) == expected, name


async def test_a_platform_that_does_not_answer_in_time_is_a_failure_of_the_platform(server: Server) -> None:
    fields = (await choices(server))["platforms"]["photo_network"]["faults"]["timeout"]
    _, body = await issue(server, "photo_network", subject="1", **fields)
    assert error_of(await log_in(server, body)) == (502, "gateway")


async def test_a_profile_has_an_address_only_if_the_provider_has_verified_it(server: Server) -> None:
    for verified in (True, False):
        profile = {"name": "Kim Park", "email": "kim@example.test", "email_verified": verified}
        subject = f"10000000000000001{verified:d}"
        _, body = await issue(server, "search_vendor_id", subject=subject, profile=profile)
        _, reply = await log_in(server, body)
        session = {"X-Service-Session-Token": reply["user"]["session"]["session_token"]}
        _, reply = await ask(server, "GET", "/bp/user/me", headers=session)
        [account] = reply["user"]["social_accounts"]
        assert account["social_profile"]["user_name"] == "Kim Park"
        assert account["social_profile"]["email"] == ("kim@example.test" if verified else "")


@pytest.mark.parametrize(
    ("platform", "choice", "expected", "message"),
    [
        ("microblog", {}, (400, "invalid_parameter"), "subject is required"),
        ("microblog", {"subject": ""}, (400, "invalid_parameter"), "subject must not be empty"),
        ("microblog", {"subject": "1", "aap": "x"}, (400, "invalid_parameter"), "aap is not a field"),
        ("microblog", {"subject": "1", "fault": "x"}, (400, "invalid_parameter"), "fault must be one of"),
        ("device", {"subject": "1"}, (404, "item_not_found"), "third-party platform device does not exist"),
        ("android_games_service", {"subject": "1"}, (404, "item_not_found"), "need no proof"),
    ],
)
async def test_an_impossible_choice_is_reported(server: Server, platform, choice, expected, message) -> None:
    result = await issue(server, platform, **choice)
    assert error_of(result) == expected
    assert message in result[1]["error"]["message"]


async def test_an_unknown_app_is_reported(server: Server) -> None:
    for method, path in (("GET", "platforms"), ("POST", "microblog/_issue")):
        body = {"subject": "1"} if method == "POST" else None
        result = await ask(server, method, f"/dev/accounts/{path}?app=nosuch", json=body)
        assert error_of(result) == (400, "app_not_found")


async def own_app(server: Server, platform: str, value: dict[str, Any]) -> str:
    """Create an app with one config of kind `sign_in`, and return its id."""
    app_id = f"app-{uuid4().hex[:8]}"
    for kind, name, config in (
        ("apps", "default", {"title": "Own", "currency": "USD"}),
        ("auth", "default", {"require_sign": False}),
        ("sign_in", platform, value),
    ):
        await server.services.configs.put(app_id, kind, name, config, author="tests", origin=COMMAND)
    return app_id


async def test_a_platform_that_the_sandbox_does_not_play_has_its_problem(server: Server) -> None:
    own = {"base_url": "https://api.weibo.example", "audiences": ["1"]}
    app_id = await own_app(server, "microblog", own)
    offer = (await choices(server, app_id))["platforms"]["microblog"]
    assert (offer["problem"], offer["faults"]) == ("sign_in microblog: base_url does not name the sandbox", {})
    assert error_of(await issue(server, "microblog", app_id=app_id, subject="1")) == (422, "config_invalid")


async def test_the_provider_is_that_of_the_config(server: Server) -> None:
    value = {
        "provider": "taobao",
        "base_url": "{sandbox}/taobao",
        "audiences": ["our-shop"],
        "client_id": "our-shop",
        "client_secret": "sandbox-secret",
        "redirect_uri": "https://app.test/callback",
    }
    app_id = await own_app(server, "retail_platform", value)
    assert (await choices(server, app_id))["platforms"]["retail_platform"]["title"] == "Taobao"
    _, body = await issue(server, "retail_platform", app_id=app_id, subject="100000000000000008")
    headers = {"X-Service-App-Id": app_id}
    assert (await ask(server, "POST", "/bp/user/login", json=body, headers=headers))[0] == 200


async def test_the_page_loads_nothing_from_elsewhere_but_pictures_of_the_sandbox(server: Server) -> None:
    async with server.http.get(f"{server.url}/dev/accounts", headers=BROWSER) as response:
        assert (response.status, response.content_type) == (200, "text/html")
        policy = response.headers["Content-Security-Policy"]
    assert f"img-src 'self' data: {server.services.settings.sandbox_url} {server.url};" in policy
    assert "script-src 'self'; style-src 'self';" in policy
    for path, status in {
        "/dev/static/accounts/page.js": 200,
        "/dev/static/vendor/preact.js": 200,
        "/dev/static/shared/bar.js": 200,
        "/dev/static/accounts/index.html": 404,
        "/dev/static/scalar.js": 404,
        "/dev/static/accounts/..%2f..%2faccounts.py": 404,
    }.items():
        async with server.http.get(server.url + path) as response:
            assert response.status == status, path


async def test_without_the_sandbox_its_endpoints_say_what_is_missing(databases, tmp_path) -> None:
    async with new_server(databases, tmp_path) as running:
        for path in ("/dev/accounts/platforms", "/dev/sms", "/dev/mail"):
            status, reply = await ask(running, "GET", path)
            assert (status, reply["error"]["error_type"]) == (400, "backend unavailable")
            assert "PARLEY_SANDBOX_URL" in reply["error"]["message"]


@pytest.mark.parametrize("shown", [True, False])
async def test_the_page_links_to_the_reference_if_it_is_served(databases, tmp_path, *, shown: bool) -> None:
    async with (
        new_server(databases, tmp_path, public_docs=shown) as running,
        running.http.get(f"{running.url}/dev/accounts") as response,
    ):
        assert ('href="/docs"' in await response.text()) is shown


async def test_production_servers_have_none_of_it(databases, tmp_path) -> None:
    async with new_server(databases, tmp_path, env="production") as running:
        for path in (
            *("/dev/accounts", "/dev/accounts/platforms", "/dev/accounts/microblog/_issue", "/dev/sms"),
            *("/dev/static/accounts/page.js", "/dev/static/vendor/preact.js"),
        ):
            for method in ("GET", "POST"):
                status, reply = await ask(running, method, path)
                assert (status, reply["error"]["error_type"]) == (404, "not_found"), path


def test_the_choices_cover_all_providers_of_the_sandbox() -> None:
    assert set(PROVIDERS) == {module.__name__.rpartition(".")[2] for module in SIGN_IN}
