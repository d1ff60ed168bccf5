"""One person's unreadable profile is a matter of this person, and never stops the sign-ins of others (§4.1)."""

from itertools import count
from typing import Any
from uuid import uuid4

import pytest

from storage.operators.audit import COMMAND
from tests.app.accounts.people import ask, enter, error_type, login
from tests.app.accounts.platforms import PROVIDERS, failures, proof
from tests.app.callers import work_off
from tests.app.sandbox_server import module_server, server, testbed
from tests.running.servers import Server
from vendors.sandbox.signin.alipay_keys import APP_PRIVATE_KEY, PUBLIC_KEY

__all__ = ["module_server", "server", "testbed"]

NAME = "Mei Lin"
OPEN_S = count(600)
"""Another value creates another breaker."""
GARBLINGS = {
    "control_characters": {"M ei Lin"},
    "cut_character": {NAME},
    "half_emoji": {NAME},
    "quote": {None, "M"},
    "cut": {None, NAME},
}
"""The names that a garbled profile may yield. None: the profile is dropped."""
LONGER = [("chat_network", "kakao"), ("retail_platform", "amazon"), *sorted(PROVIDERS.items())]


async def configure(server: Server, platform: str, provider: str) -> None:
    """Let the first counted failure open the breaker of a platform."""
    value = {
        "provider": provider,
        "base_url": f"{{sandbox}}/{provider}",
        "audiences": ["sandbox-app"],
        "client_id": "sandbox-app",
        "client_secret": "sandbox-secret",
        "redirect_uri": "https://app.test/callback",
        "breaker": {"min_calls": 1, "failure_ratio": 0.01, "open_s": next(OPEN_S)},
    }
    if provider == "alipay":
        value |= {"private_key": APP_PRIVATE_KEY, "public_key": PUBLIC_KEY}
    await server.services.configs.put("default", "sign_in", platform, value, author="tests", origin=COMMAND)


@pytest.fixture
async def line(server: Server) -> str:
    await configure(server, "chat_network", "line")
    return "chat_network"


async def shown_name(server: Server, body: dict[str, Any]) -> str | None:
    """Log in, and return the name in the profile that is stored then."""
    _, session = await enter(server, body)
    await work_off(server.services)
    _, reply = await ask(server, "GET", "/bp/user/me/social_profiles", headers=session)
    return reply["social_profiles"][0]["user_name"] if reply["social_profiles"] else None


def subject() -> str:
    return str(uuid4().int)[:18]


async def check(server: Server, platform: str, provider: str) -> None:
    await configure(server, platform, provider)
    kind = {"kind": "work"} if provider == "microsoft" else {}
    for garbling, names in GARBLINGS.items():
        body = await proof(server, platform, subject(), provider=provider, garbling=garbling, **kind)
        assert await shown_name(server, body) in names, garbling
    assert await shown_name(server, await proof(server, platform, subject(), provider=provider, **kind)) == NAME


@pytest.mark.parametrize(
    ("platform", "provider"),
    [("chat_network", "line"), ("im_network_b", "wechat"), ("payment_wallet_a", "alipay")],
)
async def test_an_unreadable_profile_is_repaired_or_dropped(server, platform, provider):
    await check(server, platform, provider)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("platform", "provider"), [row for row in LONGER if row[1] not in {"game_center", "google", "apple"}]
)
async def test_an_unreadable_profile_of_any_platform_is_repaired_or_dropped(server, platform, provider):
    await check(server, platform, provider)


@pytest.mark.parametrize("garbling", ["control_characters", "cut_character", "half_emoji"])
async def test_an_id_token_with_an_unreadable_name_is_accepted(server, garbling):
    body = await proof(server, "search_vendor_id", garbling=garbling)
    assert await shown_name(server, body) in GARBLINGS[garbling]


async def test_an_id_that_cannot_be_read_is_a_refused_proof_of_this_person_only(server, line):
    request_id = uuid4().hex
    body = await proof(server, line, "U1\u0001", provider="line")
    status, reply = await login(server, body, headers={"X-Request-Id": request_id})
    assert (status, error_type(reply)) == (400, "account.sp_auth_failed")
    [failure] = await failures(server, request_id=request_id)
    assert "userId that cannot be read" in str(failure["steps"])
    assert (await login(server, await proof(server, line, provider="line")))[0] == 200


async def test_a_profile_that_the_platform_refuses_does_not_count(server, line):
    body = await proof(server, line, provider="line", fault="unauthorized", fault_at="profile")
    status, reply = await login(server, body)
    assert (status, error_type(reply)) == (400, "account.sp_auth_failed")
    await configure(server, "im_network_b", "wechat")
    body = await proof(server, "im_network_b", fault="unauthorized", fault_at="profile")
    assert await shown_name(server, body) is None
    for platform, provider in ((line, "line"), ("im_network_b", "wechat")):
        assert (await login(server, await proof(server, platform, provider=provider)))[0] == 200


@pytest.mark.parametrize("fault", ["wrong_content_type", "unavailable"])
async def test_a_page_of_a_gateway_instead_of_a_profile_is_a_failure_of_the_platform(server, line, fault):
    body = await proof(server, line, provider="line", fault=fault, fault_at="profile")
    status, reply = await login(server, body)
    assert (status, error_type(reply)) == (502, "gateway")
    status, reply = await login(server, await proof(server, line, provider="line"))
    assert (status, error_type(reply)) == (502, "gateway")
    assert "skipped" in reply["error"]["message"]
