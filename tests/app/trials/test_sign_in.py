"""A draft of a sign-in platform verifies a proof once. Nobody is logged in, and nothing is stored."""

from typing import Any
from uuid import uuid4

import pytest

from storage.operators.audit import COMMAND
from tests.app.accounts.people import login
from tests.app.accounts.platforms import PROVIDERS, proof
from tests.app.operator_calls import call
from tests.app.sandbox_server import module_server, server, testbed
from tests.app.trials.rows import rows_of
from tests.running.servers import Server

__all__ = ["module_server", "server", "testbed"]

WECHAT = {
    "base_url": "{sandbox}/wechat",
    "audiences": ["sandbox-app"],
    "client_id": "sandbox-app",
    "client_secret": "sandbox-secret",
}
GOOGLE = {"base_url": "{sandbox}/google", "audiences": ["sandbox-app"]}
STORED = {"secret": True}


async def tried(server: Server, platform: str, value: Any, sent: Any) -> tuple[int, Any]:
    path = f"/admin/api/configs/default/sign_in/{platform}/try"
    return await call(server, "POST", path, {"value": value, "proof": sent})


async def refused(server: Server, platform: str, value: Any, sent: Any) -> tuple[int, str]:
    status, answer = await tried(server, platform, value, sent)
    return status, answer["error"]["message"]


async def test_a_proof_shows_who_it_is_and_nothing_is_stored(server: Server) -> None:
    before = await rows_of(server)
    sent = await proof(server, "im_network_b", "somebody")
    status, answer = await tried(server, "im_network_b", WECHAT, sent)
    assert status == 200, answer
    found = answer["sign_in"]
    assert (found["social_id"], found["name"], found["picture"], found["trusted"], found["provider"]) == (
        "somebody", "Mei Lin", "https://pictures.test/mei.png", True, "wechat",
    )  # fmt: skip
    assert "error" not in answer
    assert found["steps"][0]["seen"] == ["code"]
    assert found["elapsed_ms"] == answer["elapsed_ms"] >= 0
    for secret in (sent["im_network_b"]["code"], "sandbox-secret", "refresh-", "wechat-"):
        assert secret not in str(answer)
    assert await rows_of(server) == before


async def test_the_config_of_each_platform_is_tried_with_its_stored_secrets(server: Server) -> None:
    for platform, provider in PROVIDERS.items():
        _, stored = await call(server, "GET", f"/admin/api/configs/default/sign_in/{platform}")
        sent = await proof(server, platform, str(uuid4().int)[:18])
        status, answer = await tried(server, platform, stored["value"], sent)
        assert (status, "error" in answer, answer["sign_in"]["provider"]) == (200, False, provider), answer
        assert answer["sign_in"]["social_id"], platform
        path = f"/admin/api/sign_in/default/{platform}/proof_fields"
        _, asked = await call(server, "POST", path, {"value": stored["value"]})
        fields = {row["name"]: row["required"] for row in asked["fields"]}
        assert {name for name, is_required in fields.items() if is_required} <= set(sent[platform]), platform
        given = {name: value for name, value in sent[platform].items() if name in fields}
        again = await proof(server, platform, str(uuid4().int)[:18])
        only = {name: again[platform][name] for name in given}
        assert "error" not in (await tried(server, platform, stored["value"], {platform: only}))[1], platform


async def test_only_a_verified_email_is_shown(server: Server) -> None:
    for is_verified, shown in ((True, "mei@example.test"), (False, "")):
        profile = {"email": "mei@example.test", "email_verified": is_verified}
        sent = await proof(server, "search_vendor_id", profile=profile)
        _, answer = await tried(server, "search_vendor_id", GOOGLE, sent)
        assert answer["sign_in"]["email"] == shown


async def test_a_refusal_says_why_and_counts_nothing(server: Server) -> None:
    await server.services.configs.put(
        "default", "limits", "default", {"rates": {"login_address": {"count": 1, "per_s": 3600}}},
        author="test", origin=COMMAND,
    )  # fmt: skip
    before = await rows_of(server)
    for _ in range(3):
        sent = await proof(server, "search_vendor_id", app="app-of-others")
        status, answer = await tried(server, "search_vendor_id", GOOGLE, sent)
        assert (status, answer["error"].split(":")[0]) == (200, "account.sp_auth_failed")
        last = answer["sign_in"]["steps"][-1]
        assert (last["seen"], last["allowed"]) == ("app-of-others", ["sandbox-app"])
        assert last["step"] in answer["error"]
        assert sent["search_vendor_id"]["id_token"] not in str(answer)
        assert "social_id" not in answer["sign_in"] or answer["sign_in"]["social_id"] == ""
    assert await rows_of(server) == before
    status, reply = await login(server, await proof(server, "search_vendor_id"))
    assert status == 200, reply


async def test_what_the_platform_says_about_our_app_and_its_failures_are_answers(server: Server) -> None:
    sent = await proof(server, "im_network_b")
    status, answer = await tried(server, "im_network_b", {**WECHAT, "client_secret": "wrong-secret"}, sent)
    assert (status, "config_invalid" in answer["error"], "wrong-secret" in str(answer)) == (200, True, False)
    sent = await proof(server, "im_network_b", fault="unavailable")
    status, answer = await tried(server, "im_network_b", WECHAT, sent)
    assert (status, answer["error"].split(":")[0]) == (200, "gateway")
    down = {**WECHAT, "base_url": "http://127.0.0.1:1"}
    status, answer = await tried(server, "im_network_b", down, sent)
    assert (status, answer["error"].split(":")[0], "social_id" in answer) == (200, "gateway", False)
    assert answer["sign_in"]["steps"][-1]["step"] == "wechat failed"


@pytest.mark.soak
async def test_a_platform_that_hangs_has_failed_after_seconds(server: Server) -> None:
    sent = await proof(server, "im_network_b", fault="hang_before_headers")
    status, answer = await tried(server, "im_network_b", WECHAT, sent)
    assert (status, answer["error"].split(":")[0]) == (200, "gateway")
    assert 4_000 < answer["elapsed_ms"] < 60_000


async def test_a_profile_that_cannot_be_fetched_does_not_refuse_the_proof(server: Server) -> None:
    sent = await proof(server, "im_network_b", "no-profile", fault="unavailable", fault_at="profile")
    _, answer = await tried(server, "im_network_b", WECHAT, sent)
    assert (answer["sign_in"]["social_id"], answer["sign_in"]["name"]) == ("no-profile", "")
    assert answer["sign_in"]["steps"][-1]["step"] == "the profile could not be fetched"
    sent = await proof(server, "im_network_b", "no-profile", fault="unavailable", fault_at="profile")
    _, answer = await tried(server, "im_network_b", {**WECHAT, "fetch_profile": False}, sent)
    assert [step for step in answer["sign_in"]["steps"] if "profile" in step["step"]] == []


async def test_a_stored_secret_is_sent_only_where_it_was_stored_for(server: Server) -> None:
    value = {**WECHAT, "client_secret": STORED}
    status, answer = await tried(server, "im_network_b", value, await proof(server, "im_network_b", "me"))
    assert (status, answer["sign_in"]["social_id"]) == (200, "me")
    for change, name in (
        ({"base_url": "https://elsewhere.example"}, "base_url"),
        ({"provider": "wechat_mini"}, "provider"),
    ):
        sent = await proof(server, "im_network_b")
        why = f"value.client_secret must be given again, because {name} has changed"
        answer = await refused(server, "im_network_b", {**value, **change}, sent)
        assert answer == (400, f"invalid_parameter: {why}")
    _, stored = await call(server, "GET", "/admin/api/configs/default/sign_in/ios_vendor_id")
    apple = {**stored["value"], "base_url": "https://elsewhere.example"}
    status, message = await refused(server, "ios_vendor_id", apple, {"ios_vendor_id": {"identity_token": "x"}})
    assert (status, "value.private_key must be given again" in message) == (400, True)


async def test_a_signature_that_was_tried_can_still_log_in(server: Server) -> None:
    _, stored = await call(server, "GET", "/admin/api/configs/default/sign_in/ios_games_service")
    sent = await proof(server, "ios_games_service", f"G:{uuid4().int}"[:18])
    for _ in range(2):
        status, answer = await tried(server, "ios_games_service", stored["value"], sent)
        assert (status, "error" in answer) == (200, False), answer
        assert sent["ios_games_service"]["signature"] not in str(answer)
    assert (await login(server, sent))[0] == 200


async def test_a_wrong_proof_names_its_field(server: Server) -> None:
    missing = (400, "invalid_parameter: proof.im_network_b is required")
    assert await refused(server, "im_network_b", WECHAT, None) == missing
    assert await refused(server, "im_network_b", WECHAT, {"device": {"id": "d"}}) == missing
    code = {"im_network_b": {"code": "x"}}
    both = {**code, "device": {"id": "d"}}
    status, message = await refused(server, "im_network_b", WECHAT, both)
    assert (status, "proof.device is not the platform of this config" in message) == (400, True)
    empty = {"im_network_b": {"code": ""}}
    assert await refused(server, "im_network_b", WECHAT, empty) == (
        400, "invalid_parameter: proof.im_network_b.code must not be empty",
    )  # fmt: skip
    path = "/admin/api/configs/default/sign_in/ios_games_service"
    _, stored = await call(server, "GET", path)
    player = {"ios_games_service": {"player_id": "G:1"}}
    status, message = await refused(server, "ios_games_service", stored["value"], player)
    assert (status, message.startswith("invalid_parameter: proof.ios_games_service.")) == (400, True), message
    assert (await refused(server, "im_network_b", {"audiences": []}, code))[0] in {400, 422}
    status, _ = await call(server, "POST", "/admin/api/configs/nowhere/sign_in/im_network_b/try", {"value": {}})
    assert status == 404


async def test_the_fields_are_those_that_the_provider_of_the_draft_reads(server: Server) -> None:
    async def fields(platform: str, value: Any) -> Any:
        path = f"/admin/api/sign_in/default/{platform}/proof_fields"
        status, answer = await call(server, "POST", path, {"value": value})
        assert status == 200, answer
        return answer["provider"], {row["name"]: row["required"] for row in answer["fields"]}

    assert await fields("im_network_b", WECHAT) == ("wechat", {"code": True})
    assert await fields("search_vendor_id", GOOGLE) == ("google", {"id_token": True, "nonce": False})
    strict = {**GOOGLE, "require_nonce": True}
    assert await fields("search_vendor_id", strict) == ("google", {"id_token": True, "nonce": True})
    open_id = await fields("im_network_a", {"provider": "qq", "audiences": ["a"]})
    assert open_id == ("qq", {"access_token": True, "open_id": True})
    line = {"provider": "line", "audiences": ["a"]}
    assert await fields("social_network_a", line) == ("line", {"access_token": True})
    games = {"bundle_ids": ["com.example"]}
    provider, signed = await fields("ios_games_service", games)
    assert (provider, signed["signature"], signed["player_id"]) == ("game_center", True, False)
    _, trusted = await fields("ios_games_service", {**games, "skip_signature_verify": True})
    assert set(trusted) == {"player_id", "team_player_id"}
